import { ChainError, tron as tronBuild, type Asset } from '@custody/chains'
import { ApiError } from '../../errors.ts'
import type { Estimate, Owner, Question, Quote, QuoteQuestion } from '../../engine/chain.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import { spendableOf } from '../spendable.ts'
import type { Tron } from './context.ts'
import { isCarriedFree } from './cost.ts'
import { activationOf, priceOf } from './price.ts'

const UNUSED_ADDRESS = 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH'

/**
 * Returns the usual cost at the chain's price, which a caller's rate must allow.
 * @throws ApiError `INVALID_REQUEST` if the caller's rate is too low
 */
export async function estimate(
  { network, client, parameters }: Tron,
  { asset, to, feeRate }: Question,
): Promise<Estimate> {
  const prices = await parameters().catch(() => null)
  if (!prices) return { fee: 0n, reserve: 0n }
  const price = priceOf(asset, prices)
  if (feeRate !== null && feeRateInteger(network, feeRate) < price) {
    const reason = `fee_rate: is below the network's price of ${price} Sun, which applies to all transactions`
    throw new ApiError('INVALID_REQUEST', reason, { field: 'fee_rate' })
  }
  if (asset.type === 'token')
    return {
      fee: tronBuild.TOKEN_ENERGY * price + tronBuild.TOKEN_BANDWIDTH * prices.bandwidthSun,
      reserve: 0n,
    }
  const isThere = await client.isActivated(to).catch(() => true)
  return { fee: isThere ? tronBuild.TRANSFER_BANDWIDTH * price : activationOf(prices), reserve: 0n }
}

export const quote = (tron: Tron, question: QuoteQuestion): Promise<Quote> =>
  question.asset.type === 'native' ? quoteTrx(tron, question) : quoteToken(tron, question)

/**
 * Quotes bandwidth at the given rate. If the recipient has no account, its activation replaces the
 * bandwidth cost.
 */
async function quoteTrx(tron: Tron, { owner, rate, to }: QuoteQuestion): Promise<Quote> {
  const active = to !== null && (await tron.client.isActivated(to).catch(() => false))
  const activation = active ? 0n : await tron.parameters().then(activationOf, () => null)
  if (activation === null) return { fee: tronBuild.TRANSFER_BANDWIDTH * rate, basis: 'typical' }
  const { bandwidth } = active
    ? await burnt(tron, owner, { bandwidth: tronBuild.TRANSFER_BANDWIDTH, energy: 0n })
    : { bandwidth: 0n }
  return {
    fee: bandwidth * rate + activation,
    basis: 'typical',
    extra: { name: 'activation', amount: activation },
  }
}

/** Quotes energy at the given rate and bandwidth at the chain's price. */
async function quoteToken(
  tron: Tron,
  { owner, asset, rate, amount, to }: QuoteQuestion,
): Promise<Quote> {
  const bandwidthSun = await tron.parameters().then(
    (prices) => prices.bandwidthSun,
    () => tronBuild.BANDWIDTH_SUN,
  )
  const energy = await energyOf(tron, owner, asset, amount, to)
  if (energy === null)
    return {
      fee: tronBuild.TOKEN_ENERGY * rate + tronBuild.TOKEN_BANDWIDTH * bandwidthSun,
      basis: 'typical',
    }
  const points = await burnt(tron, owner, { bandwidth: tronBuild.TOKEN_BANDWIDTH, energy })
  return { fee: points.energy * rate + points.bandwidth * bandwidthSun, basis: 'wallet' }
}

/**
 * Returns the energy of a transfer of the caller's own tokens; null if there are none or the
 * contract would refuse the transfer.
 */
async function energyOf(
  tron: Tron,
  owner: Owner,
  asset: Asset,
  amount: bigint | null,
  to: string | null,
): Promise<bigint | null> {
  const balance = await spendableOf(tron.database, owner, asset)
  if (balance === null) return null
  const from = await tron.addresses.omnibus(tron.network, owner)
  try {
    return await tron.client.energy({
      asset,
      from,
      to: to ?? UNUSED_ADDRESS,
      amount: amount !== null && amount < balance ? amount : balance,
    })
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    return null
  }
}

/**
 * Returns the resources that must be paid for: staked energy and free or staked bandwidth of the
 * caller's account cost nothing.
 */
async function burnt(
  tron: Tron,
  owner: Owner,
  needs: {
    bandwidth: bigint
    energy: bigint
  },
): Promise<{ bandwidth: bigint; energy: bigint }> {
  const omnibus = await tron.addresses.omnibus(tron.network, owner)
  // An account that its fuel will activate starts with the free bandwidth of one day.
  if (!(await tron.client.isActivated(omnibus))) return { bandwidth: 0n, energy: needs.energy }
  const { energyLeft } = await tron.client.resources(omnibus)
  return {
    bandwidth: (await isCarriedFree(tron, omnibus, needs.bandwidth)) ? 0n : needs.bandwidth,
    energy: energyLeft >= needs.energy ? 0n : needs.energy - energyLeft,
  }
}
