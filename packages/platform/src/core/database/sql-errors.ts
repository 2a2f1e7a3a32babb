/**
 * Errors that the database's own functions raise, by reason. Only these functions use codes of
 * class CU.
 */
export const SQL_ERRORS = {
  prepaidShort: 'CU001',
  walletInactive: 'CU002',
  walletShort: 'CU003',
  refundExceeds: 'CU004',
  refundTooEarly: 'CU005',
  accountUnlinked: 'CU006',
  tierChanged: 'CU007',
  depositsWait: 'CU008',
} as const

/** Returns the code of a database error, and its detail. */
export const sqlErrorOf = (error: unknown): { code?: string; detail?: string } =>
  (error ?? {}) as { code?: string; detail?: string }

/** PostgreSQL's code for a unique violation: a row with the same key exists. */
export const UNIQUE_VIOLATION = '23505'
