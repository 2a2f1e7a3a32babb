import type { Role } from '../../../core/settings/settings.ts'

/** Whether a role processes due work, scans the chains, or serves the API. */
export const isWorker = (role: Role): boolean => role === 'all' || role === 'worker'
export const isScanner = (role: Role): boolean => role === 'all' || role === 'scanner'
export const isApi = (role: Role): boolean => role === 'all' || role === 'api'
