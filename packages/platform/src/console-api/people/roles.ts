/** Roles in a workspace. Each role includes those after it. */
export const ROLES = ['owner', 'admin', 'operator', 'viewer'] as const
export type Role = (typeof ROLES)[number]

/** Returns whether a person with the role `role` has the permissions of the role `needed`. */
export const includesRole = (role: Role, needed: Role): boolean =>
  ROLES.indexOf(role) <= ROLES.indexOf(needed)

/**
 * Returns whether a person with the role `role` may grant, change and revoke the role `other`: an
 * owner may do so for every role, other people for roles below their own.
 */
export const mayManage = (role: Role, other: Role): boolean =>
  role === 'owner' || ROLES.indexOf(role) < ROLES.indexOf(other)
