/** Roles in a workspace, each of which includes those after it. */
export const ROLES = ['owner', 'admin', 'operator', 'viewer'] as const
export type Role = (typeof ROLES)[number]

/** Whether who has `role` may do what needs `needed`. */
export const includesRole = (role: Role, needed: Role): boolean =>
  ROLES.indexOf(role) <= ROLES.indexOf(needed)

/**
 * Whether who has `role` may give, change and take the role `other`: an owner every one, everybody
 * else those below his own.
 */
export const mayManage = (role: Role, other: Role): boolean =>
  role === 'owner' || ROLES.indexOf(role) < ROLES.indexOf(other)
