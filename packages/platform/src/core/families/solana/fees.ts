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

/** One network's chain, as shared by the modules of this folder. */
export interface Solana {
  context: ChainContext
  network: Network
  native: Asset
  client: SolanaClient
  /** Prices in millionths of a lamport per compute unit. */
  prices: Cached<LevelRates>
}

/**
 * Returns the fee of the smallest transfer in lamports, which is the unit of a caller's fee rate.
 */
export async function rates({ prices }: Solana): Promise<LevelRates> {
  const now = await prices()
  const units = solana.unitsOf(false)
  const fee = (level: FeeLevel) => solana.feeOf(units, solana.unitPriceOf(now, level, units))
  return { low: fee('low'), medium: fee('medium'), high: fee('high') }
}

/**
 * Returns the fee of one transfer in lamports, without rent: at most the caller's rate, otherwise
 * by the level's price of compute units.
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
 * Returns the rent of the recipient's token account in lamports, which a token transfer pays in
 * addition to its fee; 0 if the token account exists.
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
 * Estimates the fee of a transfer. A token transfer is paid by the sub-account's native-coin
 * wallet, so the sending wallet reserves nothing.
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
 * Returns the amount that the native-coin wallet reserves for a token transfer. It includes the
 * rent of the recipient's token account, which is released if it was not needed.
 */
export function feeOfOtherWallet(asset: Asset, fee: bigint): bigint {
  if (asset.type !== 'token') return 0n
  return fee > solana.TOKEN_ACCOUNT_RENT ? fee : fee + solana.TOKEN_ACCOUNT_RENT
}
