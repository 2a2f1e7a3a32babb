/**
 * What a chain is called, what is counted there, and how: nothing that knows an address, so nothing
 * that loads a curve.
 */
export * from './types.ts'
export * from './amount.ts'
export * from './registry.ts'
export * from './rpc.ts'
