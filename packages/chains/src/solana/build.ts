import { bytesToHex } from '@noble/hashes/utils.js'
import { base58 } from '@scure/base'
import type { LevelRates } from '../rpc.ts'
import type { Asset, Network, UnsignedTransaction } from '../types.ts'
import { encode } from './message.ts'

export { tokenAccountOf } from './address.ts'

/** Blocks in which a blockhash may be used. */
export const BLOCKS_TO_LIVE = 150
/** Lamports per signature. */
export const SIGNATURE_FEE = 5000n
/** What an account without data must hold. */
export const ACCOUNT_RENT = 890_880n
/** What a token account must hold; the payer of a transfer that creates it pays this. */
export const TOKEN_ACCOUNT_RENT = 2_039_280n
const MICRO = 1_000_000n
/**
 * Compute units with head-room: three built-in instructions take 450; a new token account and a
 * transfer took 30,000 to 45,000.
 */
const TRANSFER_UNITS = 1000
const TOKEN_UNITS = 90_000

export const unitsOf = (token: boolean): number => (token ? TOKEN_UNITS : TRANSFER_UNITS)

/** Lamports of a transaction, without rent. */
export const feeOf = (units: number, unitPrice: bigint, signatures = 1): bigint =>
  BigInt(signatures) * SIGNATURE_FEE + (BigInt(units) * unitPrice + MICRO - 1n) / MICRO

/**
 * Lamports that each level pays beside the fee of signatures at least, whatever recent blocks asked
 * for. A price of compute units alone says little: a transfer of SOL takes 450 units, so that a
 * usual price comes to one lamport.
 */
const LEAST_PRIORITY: LevelRates = { low: 0n, medium: 1000n, high: 10_000n }

/**
 * Millionths of a lamport per compute unit that a level pays for so many units, with what it pays
 * at least.
 */
export function unitPriceOf(prices: LevelRates, level: keyof LevelRates, units: number): bigint {
  const least = (LEAST_PRIORITY[level] * MICRO) / BigInt(units)
  return prices[level] > least ? prices[level] : least
}

/** The unit price at which the whole fee is no more than `fee` lamports. */
export const unitPriceFor = (fee: bigint, units: number): bigint =>
  fee <= SIGNATURE_FEE ? 0n : ((fee - SIGNATURE_FEE) * MICRO) / BigInt(units)

/**
 * Builds an unsigned transfer of SOL, or of a token to its owner's associated token account, which
 * it creates where there is none.
 * @param o.to the wallet's address, of tokens their owner's
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
 * Builds what empties a deposit address of a token: the omnibus address receives it, pays for it,
 * and signs first.
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
