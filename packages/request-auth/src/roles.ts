/**
 * Roles of API keys. `full` signs requests that move coins. `approve` proposes policy changes and passes
 * on what people signed: decisions, vetoes and stops. `read-only` reads, and passes those on.
 */
export const API_ROLES = ['full', 'approve', 'read-only'] as const
export type ApiRole = (typeof API_ROLES)[number]
