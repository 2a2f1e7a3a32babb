import { cardano, CardanoClient } from '@custody/chains'
import type { Connect } from '../../engine/chain.ts'
import { cached, RATES_FRESH_MS } from '../cached.ts'
import { coinWallets, type CoinChain } from '../coins/chain.ts'
import { ownTransaction } from '../coins/previous.ts'
import { estimate, kept, quote, unfit } from './estimate.ts'
import { prepare } from './prepare.ts'

/** Cardano. Nothing takes the place of what is signed: it ends by itself. */
export const connectCardano: Connect = (context, network, endpoint, fetch) => {
  const now = () => context.environment.now()
  const client = new CardanoClient(network, endpoint, fetch, now)
  const rates = cached(() => client.feeRates(), RATES_FRESH_MS, now)
  const previous = async (txid: string, signed?: string) => {
    const own = signed ?? await ownTransaction(context.database, network, txid)
    return own === null ? client.transactionBody(txid) : cardano.bodyOf(own)
  }
  const chain: CoinChain<CardanoClient> = { context, network, client, rates, previous }
  return {
    ...coinWallets(network),
    network,
    client,
    rates: () => rates(),
    ratesReadAt: () => rates.readAt(),
    estimate: (question) => estimate(chain, question),
    quote: (question) => quote(chain, question),
    unfit: (payment) => unfit(network, payment),
    kept: (address) => kept(context.database, network, address),
    prepare: (task) => prepare(chain, task),
    replaceable: null,
    coins: {
      senders: (txid) => client.senders(txid),
      unspent: (txid, vout) => client.unspent(txid, vout),
      previous,
      of: (unsigned) => cardano.coinsOf(unsigned),
    },
    isDead: (hash, validUntil) => client.isDead(hash, validUntil),
  }
}
