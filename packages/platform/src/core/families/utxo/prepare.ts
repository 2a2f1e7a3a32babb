import { CHANGE_INDEX, ChainError, pathOf, utxo, type UtxoClient } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import type { FeeLevel, Prepared, Task } from '../../engine/chain.ts'
import type { CoinChain } from '../coins/chain.ts'
import { isReadable, readCoins } from '../coins/previous.ts'
import { awaitsChange, holdOf, notChosen, refused, spend } from '../coins/spend.ts'
import { ownerOf } from '../owner.ts'
import { spendableCoins } from './coins.ts'
import { rateOf } from './rates.ts'

/**
 * Selects coins in advance, reads the transactions that created them, excludes coins that cannot be
 * spent, and selects again under the wallet's lock.
 */
export async function prepare(
  chain: CoinChain<UtxoClient>,
  { row, asset, amount }: Task,
): Promise<Prepared> {
  const { context, network } = chain
  const feeRate = await rateOf(chain, row.fee_rate, row.fee_level as FeeLevel | null)
  const owner = await ownerOf(context.database, row)
  const changeAddress = await context.addresses.change(network, owner)
  const to = row.destination_id as string
  const choose = async (
    database: Queryable,
    unreadable: ReadonlyMap<string, string>,
  ): Promise<utxo.Selection | ChainError> => {
    const utxos = (await spendableCoins(database, row.wallet_id as string, network, owner)).filter(
      isReadable(unreadable),
    )
    try {
      return utxo.selectCoins(network, { utxos, to, amount, changeAddress, feeRate })
    } catch (error) {
      return notChosen(error)
    }
  }
  const { previous, unreadable } = await readCoins(
    async (left) => {
      const foreseen = await choose(context.database, left)
      return foreseen instanceof ChainError ? null : foreseen.utxos
    },
    chain.previous,
    (coin, before) => utxo.unspendable(network, coin, before),
  )
  return {
    kind: 'prepared',
    lock: 'wallet',
    async build(tx) {
      const awaits = await awaitsChange(tx, row, false)
      const selection = await choose(tx, unreadable)
      if (selection instanceof ChainError) return refused(tx, row, selection, awaits, unreadable)
      const parts = {
        selection,
        to,
        amount,
        changeAddress,
        changePath: pathOf(network, owner.subAccountIndex, CHANGE_INDEX),
        previous,
      }
      const { utxos: coins, fee } = selection
      return spend({
        coins,
        fee,
        hold: holdOf(row, asset, fee),
        previous,
        build: () => utxo.buildTransfer(network, parts),
      })
    },
  }
}
