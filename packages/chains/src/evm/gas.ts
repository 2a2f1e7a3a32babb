import type { Network } from '../types.ts'

/** What a transfer of native coin between accounts uses where nothing comes on top. */
export const NATIVE_GAS = 21_000n
/** Head-room over an estimate that depends on state or prices which may change. */
const GAS_HEADROOM_PERCENT = 130n
/**
 * The most gas of one transfer, where the registry names no other: five times what a first payment
 * takes after EIP-8037.
 */
export const GAS_MOST = 1_000_000n

/**
 * The gas limit for an estimate. One of exactly {@link NATIVE_GAS} cannot change, and has no
 * head-room.
 */
export const limitOf = (estimate: bigint): bigint =>
  estimate === NATIVE_GAS ? estimate : (estimate * GAS_HEADROOM_PERCENT) / 100n
/** The estimate that a gas limit was made of. */
export const estimateOf = (limit: bigint): bigint =>
  limit === NATIVE_GAS ? limit : (limit * 100n) / GAS_HEADROOM_PERCENT
/** The most gas that signer nodes let one transfer have. */
export const gasMost = ({ gas_most: most }: Network): bigint =>
  most === undefined ? GAS_MOST : BigInt(most)

/**
 * How nodes refuse a gas limit below what a transaction takes before its first instruction (geth,
 * Erigon, reth, nitro; Besu).
 */
const LACKS_GAS = /intrinsic gas (?:too low|exceeds gas limit)/i
/**
 * Whether a refusal says that the gas limit is too low, so that no node can hold or mine the
 * transaction.
 */
export const lacksGas = (reason: string): boolean => LACKS_GAS.test(reason)
