import { tron as tronBuild } from '@custody/chains'
import type { Tron } from './context.ts'
import { activationOf } from './price.ts'

/**
 * The most that a transfer of TRX costs beyond what it moves, in sun. Free and staked bandwidth may
 * make it less: what is left stays float.
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

/** Whether an account's own bandwidth carries a transfer of TRX: as a whole or not at all. */
export async function isCarriedFree(
  { client }: Tron,
  account: string,
  points: bigint,
): Promise<boolean> {
  const { stakedBandwidthLeft, freeBandwidthLeft } = await client.resources(account)
  return stakedBandwidthLeft >= points || freeBandwidthLeft >= points
}
