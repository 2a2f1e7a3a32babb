import { tron as tronBuild } from '@custody/chains'
import type { Tron } from './context.ts'
import { activationOf } from './price.ts'

/**
 * Returns the maximum fee of a TRX transfer, in sun. Free and staked bandwidth may reduce it; the
 * unused part stays as float.
 */
export async function nativeCost(
  { client, parameters }: Tron,
  to: string,
): Promise<{ points: bigint; activation: bigint; cost: bigint }> {
  const prices = await parameters()
  const points = tronBuild.transferBandwidth(0n)
  const activation = (await client.isActivated(to)) ? 0n : activationOf(prices)
  return { points, activation, cost: activation > 0n ? activation : points * prices.bandwidthSun }
}

/**
 * Whether an account's own bandwidth covers a TRX transfer. Bandwidth covers it completely or not
 * at all.
 */
export async function isCarriedFree(
  { client }: Tron,
  account: string,
  points: bigint,
): Promise<boolean> {
  const { stakedBandwidthLeft, freeBandwidthLeft } = await client.resources(account)
  return stakedBandwidthLeft >= points || freeBandwidthLeft >= points
}
