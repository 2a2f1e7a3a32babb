import { API_ROLES, type ApiRole } from '@custody/request-auth/roles'

/** What each role of an API user permits, in the panel's words. */
const WORDS: Record<ApiRole, string> = {
  full: 'Everything in the sub-account',
  approve: 'Read, and pass on approvals; cannot pay',
  'read-only': 'Read only',
}
export const roleWord = (role: ApiRole): string => WORDS[role]
export const ROLE_OPTIONS = API_ROLES.map((role) => [role, WORDS[role]] as const)
