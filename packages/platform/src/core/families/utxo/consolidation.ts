import { utxo, type Network, type UtxoClient } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import {
  DEFAULT_LEVEL,
  fail,
  type Consolidation,
  type Fail,
  type Merge,
  type MergeQuestion,
  type Prepared,
  type Task,
} from '../../engine/chain.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import type { CoinChain } from '../coins/chain.ts'
import { coinsUnreadable, holdOf, spend } from '../coins/spend.ts'
import { isReadable, readCoins } from '../coins/previous.ts'
import { ownerOf } from '../owner.ts'
import { smallestCoins } from './coins.ts'

/** Number of coins that are read besides those that can be merged, in case some cannot be spent. */
const SPARE_COINS = 20

/** Chooses the smallest coins of a wallet, apart from those that cannot be spent. */
async function choose(
  network: Network,
  database: Queryable,
  { owner, walletId, target, least, ...question }: MergeQuestion,
  unreadable: ReadonlyMap<string, string> = new Map(),
): Promise<utxo.Consolidated> {
  const worth = utxo.leastWorthMerging(network, question.feeRate)
  const { coins, free } = await smallestCoins(database, walletId, network, {
    owner,
    least: least > worth ? least : worth,
    limit: utxo.CONSOLIDATION.inputsMost + SPARE_COINS,
  })
  return utxo.selectConsolidation(network, {
    ...question,
    utxos: coins.filter(isReadable(unreadable)),
    countMost: free - target + 1,
    least,
  })
}

/** See {@link Consolidation}. */
export const consolidation = ({ context, network }: CoinChain<UtxoClient>): Consolidation => ({
  address: (owner) => context.addresses.change(network, owner),
  async choose(database, question): Promise<Merge> {
    const chosen = await choose(network, database, question)
    if ('lacks' in chosen) return chosen
    const { fee, utxos } = chosen.selection
    return { sum: chosen.sum, fee, inputs: utxos.length }
  },
})

const WHY = {
  few: 'fewer than 10 coins are left that are worth merging',
  sum: 'the coins that are left are worth more than the consolidation may merge',
  fee: 'the network fee is too high for these coins now',
}

/**
 * Chooses the coins of a consolidation again, as they are now, within what the request and its creation
 * allow, and returns the total less the fee to the wallet's change address.
 */
export async function prepareConsolidation(
  chain: CoinChain<UtxoClient>,
  { row, asset }: Task,
): Promise<Prepared | Fail> {
  const { context, network } = chain
  const feeRate = await rateOf(chain, row)
  if (feeRate === null)
    return fail(`the fee rate of the network has risen above its max_fee_rate of ${row.fee_rate}`)
  const owner = await ownerOf(context.database, row)
  const changeAddress = await context.addresses.change(network, owner)
  const question: MergeQuestion = {
    owner,
    walletId: row.wallet_id as string,
    changeAddress,
    feeRate,
    target: Number(row.plan.target_coins ?? '1'),
    least: BigInt(row.plan.min_value ?? '0'),
    sumMost: BigInt(row.plan.sum_most ?? '0'),
  }
  const { previous, unreadable } = await readCoins(
    async (left) => {
      const foreseen = await choose(network, context.database, question, left)
      return 'lacks' in foreseen ? null : foreseen.selection.utxos
    },
    chain.previous,
    (coin, before) => utxo.unspendable(network, coin, before),
  )
  return {
    kind: 'prepared',
    lock: 'wallet',
    async build(tx) {
      const chosen = await choose(network, tx, question, unreadable)
      if ('lacks' in chosen)
        return unreadable.size > 0 ? coinsUnreadable(unreadable) : fail(WHY[chosen.lacks])
      const { selection } = chosen
      const { utxos: coins, fee, change } = selection
      const built = spend({
        coins,
        fee,
        hold: holdOf(row, asset, fee),
        previous,
        build: () => utxo.buildReturn(network, { selection, changeAddress, previous }),
      })
      return built.kind === 'built' ? { ...built, amount: change } : built
    },
  }
}

/**
 * Returns the current rate of the default level in satoshi per 1000 vbytes, at most that of the request;
 * null if it is above that and the transaction could not be replaced by one with a higher fee.
 */
async function rateOf(
  { network, rates }: CoinChain<UtxoClient>,
  { fee_rate: text }: TransactionRow,
): Promise<bigint | null> {
  const current = (await rates())[DEFAULT_LEVEL]
  if (text === null) return current
  const most = feeRateInteger(network, text)
  if (current <= most) return current
  return network.utxo?.replaceable ? most : null
}
