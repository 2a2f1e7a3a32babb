import type { Network } from '../types.ts'

/** Gas that a transfer of native coin between accounts uses if nothing is added. */
export const NATIVE_GAS = 21_000n
/** Gas limit, in percent of an estimate that depends on changeable state or prices. */
const GAS_HEADROOM_PERCENT = 130n
/**
 * Maximum gas of one transfer, unless the registry specifies another: five times what a first
 * payment uses after EIP-8037.
 */
export const GAS_MOST = 1_000_000n

/**
 * Returns the gas limit for an estimate. An estimate of exactly {@link NATIVE_GAS} cannot change
 * and gets no margin.
 */
export const limitOf = (estimate: bigint): bigint =>
  estimate === NATIVE_GAS ? estimate : (estimate * GAS_HEADROOM_PERCENT) / 100n
/** Returns the estimate from which a gas limit was computed. */
export const estimateOf = (limit: bigint): bigint =>
  limit === NATIVE_GAS ? limit : (limit * 100n) / GAS_HEADROOM_PERCENT
/** Returns the maximum gas that signer nodes allow for one transfer. */
export const gasMost = ({ gas_most: most }: Network): bigint =>
  most === undefined ? GAS_MOST : BigInt(most)
