/**
 * Schemas of the request bodies that signer nodes check. The API and the nodes use the same
 * schemas, so they accept the same bodies, with identical limits.
 */
export * from './consolidate.ts'
export * from './fields.ts'
export * from './parsed.ts'
export * from './rule.ts'
export * from './staking.ts'
export * from './transfer.ts'
export * from './words.ts'
