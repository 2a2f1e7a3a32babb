import { cardano, CardanoClient, type Network } from '@custody/chains'
import type { Chain, ChainContext, Connect } from '../../engine/chain.ts'
import { cached, RATES_FRESH_MS } from '../cached.ts'
import { coinWallets, type CoinChain } from '../coins/chain.ts'
import { ownTransaction } from '../coins/previous.ts'
import { estimate, payable, reserveOf, quote, unfit } from './estimate.ts'
import { CARDANO_MAY_BE_CHOSEN } from './coins.ts'
import { prepare } from './prepare.ts'

/**
 * Cardano: wallets are sets of coins. A signed transaction cannot be replaced; it expires at its
 * slot.
 */
export const connectCardano: Connect = (context, network, endpoints) =>
  cardanoChain(
    context,
    network,
    endpoints.client(
      (endpoint, fetch) =>
        new CardanoClient(
          network,
          endpoint,
          fetch,
          () => context.environment.now(),
          context.report,
        ),
    ),
  )

export function cardanoChain(
  context: ChainContext,
  network: Network,
  client: CardanoClient,
): Chain {
  const now = () => context.environment.now()
  const rates = cached(() => client.feeRates(), RATES_FRESH_MS, now)
  const previous = async (txid: string, signed?: string) => {
    const raw = signed ?? (await ownTransaction(context.database, network, txid))
    return raw === null ? client.transactionBody(txid) : cardano.bodyOf(raw)
  }
  const own: CoinChain<CardanoClient> = { context, network, client, rates, previous }
  return {
    ...coinWallets(network),
    network,
    client,
    rates: () => rates(),
    ratesReadAt: () => rates.readAt(),
    estimate: (question) => estimate(own, question),
    quote: (question) => quote(own, question),
    unfit: (payment) => unfit(network, payment),
    reserveOf: (address) => reserveOf(context.database, network, address),
    prepare: (task) => prepare(own, task),
    replaceable: null,
    coins: {
      senders: (txid) => client.senders(txid),
      unspent: (txid, vout) => client.unspent(txid, vout),
      previous,
      of: (unsigned) => cardano.coinsOf(unsigned),
      choosable: CARDANO_MAY_BE_CHOSEN,
      payable: (of) => payable(own, of),
    },
    isDead: (hash, validUntil) => client.isDead(hash, validUntil),
  }
}
