import type { Role } from '../settings/settings.ts'

/** Whether a role runs what is due, reads the chains, answers the API. */
export const works = (role: Role): boolean => role === 'all' || role === 'worker'
export const scans = (role: Role): boolean => role === 'all' || role === 'scanner'
export const serves = (role: Role): boolean => role === 'all' || role === 'api'
