import {
  solana,
  type Asset,
  type LevelRates,
  type Network,
  type SolanaClient,
} from '@custody/chains'
import {
  DEFAULT_LEVEL,
  type ChainContext,
  type Estimate,
  type FeeLevel,
  type Question,
  type Quote,
  type QuoteQuestion,
} from '../../engine/chain.ts'
import type { Cached } from '../cached.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'

/** One network's chain, as the parts of this folder share it. */
export interface Solana {
  context: ChainContext
  network: Network
  native: Asset
  client: SolanaClient
  /** Millionths of a lamport per compute unit. */
  prices: Cached<LevelRates>
}

/** Lamports of the smallest transfer, which is what a caller's fee rate names. */
export async function rates({ prices }: Solana): Promise<LevelRates> {
  const now = await prices()
  const units = solana.unitsOf(false)
  const fee = (level: FeeLevel) => solana.feeOf(units, solana.unitPriceOf(now, level, units))
  return { low: fee('low'), medium: fee('medium'), high: fee('high') }
}

/**
 * Lamports of one transfer, without rent: at most the caller's, else by the level's price of
 * compute units.
 */
export async function feeOf(
  { network, prices }: Solana,
  asset: Asset,
  feeRate: string | null,
  level: string | null,
  signatures = 1,
): Promise<{ fee: bigint; unitPrice: bigint }> {
  const units = solana.unitsOf(asset.type === 'token')
  const unitPrice =
    feeRate === null
      ? solana.unitPriceOf(await prices(), (level as FeeLevel | null) ?? DEFAULT_LEVEL, units)
      : solana.unitPriceFor(feeRateInteger(network, feeRate), units)
  return { fee: solana.feeOf(units, unitPrice, signatures), unitPrice }
}

/**
 * What a transfer of a token costs beside its fee: the rent of the receiver's token account, unless
 * one is seen.
 */
export async function rentFor(
  { client }: Solana,
  asset: Asset,
  to: string | null,
): Promise<bigint> {
  if (to === null) return solana.TOKEN_ACCOUNT_RENT
  const account = await client
    .account(solana.tokenAccountOf(to, asset.contract_address as string))
    .catch(() => null)
  return account ? 0n : solana.TOKEN_ACCOUNT_RENT
}

/**
 * What pays for a token's transfer is the sub-account's wallet of the native coin, of which the
 * sending one holds nothing back.
 */
export async function estimate(
  chain: Solana,
  { asset, to, feeRate, level }: Question,
): Promise<Estimate> {
  const { fee } = await feeOf(chain, asset, feeRate, level).catch(() => ({
    fee: 2n * solana.SIGNATURE_FEE,
  }))
  if (asset.type !== 'token') return { fee, reserve: fee }
  return { fee: fee + (await rentFor(chain, asset, to)), reserve: 0n }
}

export async function quote(chain: Solana, { asset, rate, to }: QuoteQuestion): Promise<Quote> {
  if (asset.type !== 'token') return { fee: rate, basis: 'typical' }
  const rent = await rentFor(chain, asset, to)
  return { fee: rate + rent, basis: 'typical', extra: { name: 'rent', amount: rent } }
}

/**
 * What the receiver's account may cost is held back until a token's transfer is done, and given
 * back where it was not needed.
 */
export function feeOfOtherWallet(asset: Asset, fee: bigint): bigint {
  if (asset.type !== 'token') return 0n
  return fee > solana.TOKEN_ACCOUNT_RENT ? fee : fee + solana.TOKEN_ACCOUNT_RENT
}
