import { bytesToHex } from '@noble/hashes/utils.js'
import { base58 } from '@scure/base'
import type { LevelRates } from '../rpc.ts'
import type { Asset, Network, UnsignedTransaction } from '../types.ts'
import { encode } from './message.ts'

export { tokenAccountOf } from './address.ts'

/** Number of blocks for which a blockhash is valid. */
export const BLOCKS_TO_LIVE = 150
/** Lamports per signature. */
export const SIGNATURE_FEE = 5000n
/** Minimum balance in lamports of an account without data. */
export const ACCOUNT_RENT = 890_880n
/**
 * Minimum balance in lamports of a token account. The payer of a transfer that creates the account
 * pays it.
 */
export const TOKEN_ACCOUNT_RENT = 2_039_280n
const MICRO = 1_000_000n
/**
 * Compute units with a margin: three built-in instructions use 450; a new token account and a
 * transfer used 30,000 to 45,000.
 */
const TRANSFER_UNITS = 1000
const TOKEN_UNITS = 90_000

export const unitsOf = (token: boolean): number => (token ? TOKEN_UNITS : TRANSFER_UNITS)

/** Returns the lamports of a transaction's fee, without rent. */
export const feeOf = (units: number, unitPrice: bigint, signatures = 1): bigint =>
  BigInt(signatures) * SIGNATURE_FEE + (BigInt(units) * unitPrice + MICRO - 1n) / MICRO

/**
 * Minimum priority fee in lamports that each level pays in addition to the signature fee, whatever
 * recent blocks charged. A price per compute unit alone is not enough: a transfer of SOL uses 450
 * units, so a usual price amounts to one lamport.
 */
const LEAST_PRIORITY: LevelRates = { low: 0n, medium: 1000n, high: 10_000n }

/**
 * Returns the price of a level for the given number of compute units, in millionths of a lamport
 * per unit, with the level's minimum applied.
 */
export function unitPriceOf(prices: LevelRates, level: keyof LevelRates, units: number): bigint {
  const least = (LEAST_PRIORITY[level] * MICRO) / BigInt(units)
  return prices[level] > least ? prices[level] : least
}

/** Returns the unit price at which the whole fee is at most `fee` lamports. */
export const unitPriceFor = (fee: bigint, units: number): bigint =>
  fee <= SIGNATURE_FEE ? 0n : ((fee - SIGNATURE_FEE) * MICRO) / BigInt(units)

/**
 * Builds an unsigned transfer of SOL, or of a token to its owner's associated token account, which
 * it creates if it does not exist.
 * @param o.to the wallet's address; for tokens their owner's
 * @param o.unitPrice millionths of a lamport
 */
export function buildTransfer(
  network: Network,
  o: {
    asset: Asset
    to: string
    amount: bigint
    blockhash: string
    units?: number
    unitPrice: bigint
    publicKey: Uint8Array
    path: number[]
  },
): UnsignedTransaction {
  const token =
    o.asset.type === 'token'
      ? { mint: o.asset.contract_address as string, decimals: o.asset.decimals }
      : null
  const bytes = encode({
    from: base58.encode(o.publicKey),
    to: o.to,
    amount: o.amount,
    token,
    sweep: false,
    blockhash: o.blockhash,
    units: o.units ?? unitsOf(token !== null),
    unitPrice: o.unitPrice,
  })
  return { network: network.code, bytes: bytesToHex(bytes), inputs: [{ path: o.path }] }
}

/**
 * Builds the transaction that empties a deposit address of a token. The omnibus address receives
 * the tokens, pays the fee, and signs first.
 */
export function buildTokenSweep(
  network: Network,
  o: {
    asset: Asset
    amount: bigint
    blockhash: string
    units: number
    unitPrice: bigint
    from: { publicKey: Uint8Array; path: number[] }
    omnibus: { publicKey: Uint8Array; path: number[] }
  },
): UnsignedTransaction {
  const token = { mint: o.asset.contract_address as string, decimals: o.asset.decimals }
  const bytes = encode({
    from: base58.encode(o.from.publicKey),
    to: base58.encode(o.omnibus.publicKey),
    amount: o.amount,
    token,
    sweep: true,
    blockhash: o.blockhash,
    units: o.units,
    unitPrice: o.unitPrice,
  })
  return {
    network: network.code,
    bytes: bytesToHex(bytes),
    inputs: [{ path: o.omnibus.path }, { path: o.from.path }],
  }
}
