/**
 * Bodies of the requests that signer nodes check. API and nodes read them with these very schemas:
 * what one takes the other takes, with the same limits, counted alike.
 */
export * from './fields.ts'
export * from './parsed.ts'
export * from './rule.ts'
export * from './staking.ts'
export * from './transfer.ts'
