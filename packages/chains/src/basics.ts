/**
 * Names, types and arithmetic of chains. These modules do not handle addresses, so importing them
 * loads no curve library.
 */
export * from './types.ts'
export * from './amount.ts'
export * from './mode.ts'
export * from './registry.ts'
export * from './rpc.ts'
