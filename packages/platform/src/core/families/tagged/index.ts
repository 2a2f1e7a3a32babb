import {
  stellar,
  StellarClient,
  traitsOf,
  xrp,
  XrpClient,
  type Network,
  type ResignedClient,
  type TaggedClient,
} from '@custody/chains'
import type { Chain, ChainContext, Connect } from '../../engine/chain.ts'
import { chosenRate } from '../../engine/fee-rate.ts'
import { cached, RATES_FRESH_MS } from '../cached.ts'
import { cachedReserveOf } from '../chain-reserve.ts'
import { prepare } from './prepare.ts'
import { refusalOf } from './refusal.ts'
import type { Dialect, Tagged } from './tagged.ts'

/**
 * Multiple of the minimum fee rate that is used for estimates while the chain cannot be queried.
 */
const FALLBACK_FACTOR = 10n

const XRP: Dialect = {
  tagName: 'destination tag',
  creates: false,
  reserveLeast: 1_000_000n,
  isMuxed: () => false,
  pay: (network, payment) => xrp.buildPayment(network, payment),
}

const STELLAR: Dialect = {
  tagName: 'memo',
  creates: true,
  reserveLeast: 10_000_000n,
  isMuxed: (address) => stellar.splitMuxed(address) !== null,
  pay: (network, payment) => stellar.buildPayment(network, payment),
}

export const connectXrp: Connect = (context, network, endpoints) =>
  xrpChain(
    context,
    network,
    endpoints.client(
      (endpoint, fetch) => new XrpClient(network, endpoint, fetch, () => context.environment.now()),
    ),
  )

export const connectStellar: Connect = (context, network, endpoints) =>
  stellarChain(
    context,
    network,
    endpoints.client(
      (endpoint, fetch) =>
        new StellarClient(
          network,
          endpoint,
          fetch,
          () => context.environment.now(),
          context.report,
        ),
    ),
  )

/** Creates the chain of the XRP Ledger. The id of a transaction covers its signature. */
export const xrpChain = (
  context: ChainContext,
  network: Network,
  client: TaggedClient & ResignedClient,
): Chain => ({
  ...taggedChain(context, network, client, XRP),
  findSigned: (account, message, validUntil) => client.findSigned(account, message, validUntil),
})

export const stellarChain = (
  context: ChainContext,
  network: Network,
  client: TaggedClient,
): Chain => taggedChain(context, network, client, STELLAR)

function taggedChain(
  context: ChainContext,
  network: Network,
  client: TaggedClient,
  dialect: Dialect,
): Chain {
  const { environment } = context
  const rates = cached(
    () => client.feeRates(),
    RATES_FRESH_MS,
    () => environment.now(),
  )
  const chain: Tagged = { context, network, client, dialect, rates }
  const reserve = async (address: string) =>
    (await client.account(address))?.reserve ?? (await client.activation())
  const stored = cachedReserveOf(environment, reserve, dialect.reserveLeast)
  return {
    network,
    client,
    tagName: dialect.tagName,
    rates: () => rates(),
    ratesReadAt: () => rates.readAt(),
    async estimate({ feeRate, level }) {
      const fee = await chosenRate(chain, feeRate, level).catch(
        () => FALLBACK_FACTOR * traitsOf(network).leastRate(network),
      )
      return { fee, reserve: fee }
    },
    // One payment is one operation, so the rate is its price.
    quote: async ({ rate }) => ({ fee: rate, basis: 'typical' }),
    unfit: () => null,
    refusal: (payment) => refusalOf(chain, payment),
    reserveOf: (address) => stored(address),
    feeOfOtherWallet: () => 0n,
    prepare: (task) => prepare(chain, task),
    fuelled: null,
    replaceable: null,
    coins: null,
    stakes: null,
    isDead: (hash, validUntil) => client.isDead(hash, validUntil),
    async nextNonce(account) {
      const state = await client.account(account)
      if (!state) throw new Error('the chain does not return the account')
      return state.sequence
    },
    balance: (address) => client.balance(address),
  }
}
