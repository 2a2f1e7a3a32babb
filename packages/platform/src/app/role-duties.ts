import type { Role } from '../settings/settings.ts'

/** Whether a role runs what is due, reads the chains, answers the API. */
export const isWorker = (role: Role): boolean => role === 'all' || role === 'worker'
export const isScanner = (role: Role): boolean => role === 'all' || role === 'scanner'
export const isApi = (role: Role): boolean => role === 'all' || role === 'api'
