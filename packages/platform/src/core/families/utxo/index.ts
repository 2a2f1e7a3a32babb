import { utxo, UtxoClient, type Network } from '@custody/chains'
import type { Chain, ChainContext, Connect } from '../../engine/chain.ts'
import { isConsolidation } from '../../engine/transaction.ts'
import { cached, RATES_FRESH_MS } from '../cached.ts'
import { coinWallets, type CoinChain } from '../coins/chain.ts'
import { MAY_BE_CHOSEN } from '../coins/choosable.ts'
import { ownTransaction } from '../coins/previous.ts'
import { consolidation, prepareConsolidation } from './consolidation.ts'
import { estimate, payable, quote, unfit } from './estimate.ts'
import { prepare } from './prepare.ts'
import { warningOf } from './rates.ts'
import { replaceable } from './replaceable.ts'

/** Bitcoin and related chains. */
export const connectUtxo: Connect = (context, network, endpoints) =>
  utxoChain(
    context,
    network,
    endpoints.client(
      (endpoint, fetch) =>
        new UtxoClient(network, endpoint, fetch, () => context.environment.now(), context.report),
    ),
  )

export function utxoChain(context: ChainContext, network: Network, client: UtxoClient): Chain {
  const rates = cached(
    () => client.feeRates(),
    RATES_FRESH_MS,
    () => context.environment.now(),
  )
  const previous = async (txid: string, signed?: string) =>
    signed ?? (await ownTransaction(context.database, network, txid)) ?? client.rawTransaction(txid)
  const own: CoinChain<UtxoClient> = { context, network, client, rates, previous }
  return {
    ...coinWallets(network),
    network,
    client,
    rates: () => rates(),
    // An estimate that is no longer current is returned with the time at which it was read from the
    // node.
    ratesReadAt: () =>
      rates.readAt() === null ? null : (client.feeReading?.readAt ?? rates.readAt()),
    ratesWarning: () => warningOf(client.feeReading),
    estimate: (question) => estimate(own, question),
    quote: (question) => quote(own, question),
    unfit: (payment) => unfit(network, payment),
    reserveOf: () => Promise.resolve(0n),
    prepare: (task) =>
      isConsolidation(task.row) ? prepareConsolidation(own, task) : prepare(own, task),
    replaceable: network.utxo?.replaceable ? replaceable(own) : null,
    mempool: {
      waiting: () => client.waiting(),
      transfers: (txids) => client.waitingTransfers(txids),
    },
    coins: {
      senders: (txid) => client.senders(txid),
      unspent: (txid, vout) => client.unspent(txid, vout),
      previous,
      of: (unsigned) => utxo.coinsOf(network, unsigned),
      choosable: MAY_BE_CHOSEN,
      payable: (of) => payable(own, of),
      consolidation: consolidation(own),
    },
  }
}
