import {
  tron as tronBuild,
  type Network,
  type TronClient,
  type TronResource,
} from '@custody/chains'
import { ApiError } from '../../core/errors.ts'

/**
 * Sun in a million TRX, for which `energyPerMillionTrx` states the number of points; 1 TRX is 10^6
 * sun.
 */
const SCALE = 10n ** 12n

/**
 * Queries the chain. If the chain is unreachable, the request is refused; no value is assumed.
 * @throws ApiError `NETWORK_UNAVAILABLE`
 */
export async function callChain<T>(network: Network, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw new ApiError(
      'NETWORK_UNAVAILABLE',
      `network ${network.code} cannot be reached; nothing was changed`,
    )
  }
}

/** Returns the points per day that an amount of stake currently provides. */
export async function worthOf(
  client: TronClient,
  account: string,
  resource: TronResource,
  amount: bigint,
): Promise<bigint> {
  const resources = await client.resources(account)
  return (
    (amount *
      (resource === 'ENERGY' ? resources.energyPerMillionTrx : resources.bandwidthPerMillionTrx)) /
    SCALE
  )
}

/** Returns why nothing can be delegated to a receiver; null if delegation is possible. */
export async function receiverRefusal(client: TronClient, address: string): Promise<string | null> {
  if (await client.isContract(address))
    return 'is a contract, which cannot receive a resource by delegation'
  return (await client.account(address)) === null
    ? 'has never been activated; the chain delegates resources to active accounts only, so send it some TRX first'
    : null
}

/**
 * Returns how much stake the chain would allow to delegate after `amount` more is staked. The chain
 * does not delegate stake that today's resource use relies on. If stake pays for the bandwidth of
 * these calls, they are such a use.
 */
export async function lendableAfter(
  client: TronClient,
  account: string,
  resource: TronResource,
  amount: bigint,
): Promise<bigint> {
  const [resources, held, most] = await Promise.all([
    client.resources(account),
    client.account(account),
    client.delegatable(account, resource),
  ])
  const staked = held?.staked[resource] ?? 0n
  const [used, per] =
    resource === 'ENERGY'
      ? [resources.energyUsed, resources.energyPerMillionTrx]
      : [resources.bandwidthUsed, resources.bandwidthPerMillionTrx]
  if (per === 0n) return staked + amount
  const rests = (points: bigint) => (points * SCALE + per - 1n) / per
  // The chain's own value is preferred, because part of the use may rely on resources delegated to
  // the account.
  const bound = most > 0n ? staked - most : rests(used)
  const points = tronBuild.actionBandwidth('delegate')
  const takesStake = resource === 'BANDWIDTH' && ((staked + amount) * per) / SCALE - used >= points
  const own =
    bound +
    (takesStake ? rests(points + (amount > 0n ? tronBuild.actionBandwidth('freeze') : 0n)) : 0n)
  return staked + amount > own ? staked + amount - own : 0n
}

export const MATURED_FIRST =
  'unstaked TRX has completed its cooldown; unstaking would release it as well, which requires an explicit request: release it first with POST /dav/v1/release-unstaked'
const UNSTAKES_MAX = 32
export const TOO_MANY = `the chain allows at most ${UNSTAKES_MAX} unstakes of an account in cooldown at the same time`

/**
 * Returns why the chain would refuse another unstake of an account now, or null.
 * @param pending number of pending unstakes that the chain has not seen
 */
export async function unstakeRefusal(
  client: TronClient,
  account: string,
  pending: number,
): Promise<'matured' | 'limit' | null> {
  if ((await client.withdrawable(account)) > 0n) return 'matured'
  return (await client.unfreezesLeft(account)) - pending <= 0 ? 'limit' : null
}
