/** What the database's own functions raise, by the reason. Codes of class CU are nobody else's. */
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

/** The code of a database error, and what it tells beside its sentence. */
export const sqlErrorOf = (error: unknown): { code?: string; detail?: string } =>
  (error ?? {}) as { code?: string; detail?: string }

/** PostgreSQL's own: a row like it is there. */
export const UNIQUE_VIOLATION = '23505'
