import { solana, SolanaClient, type Asset, type Network } from '@custody/chains'
import type { Chain, ChainContext, Connect } from '../../engine/chain.ts'
import { cached, RATES_FRESH_MS } from '../cached.ts'
import { cachedReserveOf } from '../chain-reserve.ts'
import { estimate, feeOfOtherWallet, quote, rates, type Solana } from './fees.ts'
import { prepare } from './prepare.ts'
import { refusalOf } from './refusal.ts'

/** Solana: accounts without nonces; fees of tokens are paid by the native-coin wallet. */
export const connectSolana: Connect = (context, network, endpoints) => {
  const { environment, registry } = context
  return solanaChain(
    context,
    network,
    endpoints.client(
      (endpoint, fetch) =>
        new SolanaClient(network, registry.assetsOf(network.code), endpoint, fetch, () =>
          environment.now(),
        ),
    ),
  )
}

export function solanaChain(context: ChainContext, network: Network, client: SolanaClient): Chain {
  const { environment, registry } = context
  const prices = cached(
    () => client.unitPrices(),
    RATES_FRESH_MS,
    () => environment.now(),
  )
  const chain: Solana = {
    context,
    network,
    native: registry.asset(network.native_asset) as Asset,
    client,
    prices,
  }
  const stored = cachedReserveOf(environment, () => client.rent(), solana.ACCOUNT_RENT)
  return {
    network,
    client,
    rates: () => rates(chain),
    ratesReadAt: () => prices.readAt(),
    estimate: (question) => estimate(chain, question),
    quote: (question) => quote(chain, question),
    unfit: () => null,
    refusal: (payment) => refusalOf(chain, payment),
    // A token account has no reserve in tokens; its rent is accounted for separately.
    reserveOf: async (address, asset) => (asset.type === 'native' ? stored(address) : 0n),
    feeOfOtherWallet,
    prepare: (task) => prepare(chain, task),
    fuelled: null,
    replaceable: null,
    coins: null,
    stakes: null,
    isDead: (hash, validUntil) => client.isDead(hash, validUntil),
    findSigned: (account, message, validUntil) => client.findSigned(account, message, validUntil),
    isStale: (validUntil) => client.isStale(validUntil),
    latestEnd: async () => (await client.lifetime()).validUntil,
    balance: (address, asset) => client.balance(address, asset),
    balances: (addresses, asset, height) => client.balances(addresses, asset, height),
    holdings: (address, asset) => client.holdings(address, asset),
  }
}
