import { TronClient, type Asset, type Network } from '@custody/chains'
import {
  fail,
  type Chain,
  type ChainContext,
  type Connect,
  type Fuelled,
  type Payment,
  type Refusal,
} from '../../engine/chain.ts'
import { cached, RATES_FRESH_MS } from '../cached.ts'
import type { Tron } from './context.ts'
import { isCarriedFree, nativeCost } from './cost.ts'
import { estimate, quote } from './estimate.ts'
import { fuelFor, price } from './plan.ts'
import { prepare } from './prepare.ts'
import { priceOf } from './price.ts'

/**
 * Amount of a local gas tank's first funding (a token transfer costs up to 16 TRX), and the balance
 * below which any tank is low, about three token transfers. In TRX.
 */
const FIRST_FILL_COINS = 1000n
const THRESHOLD_COINS = 50n
/** Seconds of a transaction's ten-minute lifetime that must be left for signing and sending. */
const SECONDS_LEAST = 240

/**
 * Tron: accounts without nonces, fees paid by the workspace's gas tank as TRX or delegated energy,
 * sweeps, staking.
 */
export const connectTron: Connect = (context, network, endpoints) =>
  tronChain(
    context,
    network,
    endpoints.client(
      (endpoint, fetch) =>
        new TronClient(
          network,
          context.registry.assetsOf(network.code),
          endpoint,
          fetch,
          (end) => Buffer.from(context.environment.bytes(4)).readUInt32BE(0) % end,
        ),
    ),
  )

export function tronChain(context: ChainContext, network: Network, client: TronClient): Chain {
  const native = context.registry.asset(network.native_asset) as Asset
  const parameters = cached(
    () => client.parameters(),
    RATES_FRESH_MS,
    () => context.environment.now(),
  )
  const tron: Tron = { ...context, network, client, native, parameters }
  const coin = 10n ** BigInt(native.decimals)
  return {
    network,
    client,
    coins: null,
    replaceable: null,
    stakes: {
      client,
      parameters,
      paymentCost: async (to) => (await nativeCost(tron, to)).cost,
      fuelFor: async (account, points) =>
        fuelFor(tron, account, {
          units: points,
          price: (await parameters()).bandwidthSun,
          extra: 0n,
        }),
    },
    fuelled: {
      price: (task) => price(tron, task),
      drain: (o) => drain(tron, o),
      firstFill: FIRST_FILL_COINS * coin,
      threshold: THRESHOLD_COINS * coin,
    },
    async rates(asset) {
      const sun = priceOf(asset, await parameters())
      return { low: sun, medium: sun, high: sun }
    },
    ratesReadAt: parameters.readAt,
    estimate: (question) => estimate(tron, question),
    quote: (question) => quote(tron, question),
    unfit: () => null,
    refusal: (payment) => refusal(tron, payment),
    reserveOf: async () => 0n,
    feeOfOtherWallet: () => 0n,
    prepare: (task) => prepare(tron, task),
    isDead: (hash, validUntil) => client.isDead(hash, validUntil),
    isStale: async (validUntil) => validUntil - (await client.headTime()) / 1000 < SECONDS_LEAST,
    balance: (address, asset) => client.balance(address, asset),
  }
}

/** Refuses TRX payments to a contract, which nodes reject. Tokens may be sent to one. */
async function refusal({ client }: Tron, { to, asset }: Payment): Promise<Refusal | null> {
  if (asset.type !== 'native' || !(await client.isContract(to))) return null
  return {
    field: 'destination_address',
    reason: 'is a contract, which cannot receive TRX by a transfer',
  }
}

/**
 * Returns the cost of sending a tank's full balance. A fee is reserved unless free bandwidth covers
 * the transfer; a fuel transaction sent at the same time would use that bandwidth first.
 */
async function drain(
  tron: Tron,
  { from, to, idle }: Parameters<Fuelled['drain']>[0],
): ReturnType<Fuelled['drain']> {
  const refused = await refusal(tron, { to, tag: null, amount: 0n, asset: tron.native })
  if (refused) return fail(refused.reason)
  const { points, activation, cost } = await nativeCost(tron, to)
  const worst = activation === 0n && idle && (await isCarriedFree(tron, from, points)) ? 0n : cost
  return { kind: 'drain', worst, plan: { fee_limit: '0', need: worst.toString() } }
}
