import {
  cardano,
  CHANGE_INDEX,
  ChainError,
  pathOf,
  type CardanoClient,
  type Network,
} from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import type { Prepared, Task } from '../../engine/chain.ts'
import type { CoinChain } from '../coins/chain.ts'
import { isReadable, readCoins } from '../coins/previous.ts'
import { awaitsChange, coinsUnreadable, holdOf, notChosen, refused, spend } from '../coins/spend.ts'
import { ownerOf } from '../owner.ts'
import { cardanoCoins, coinsOfDead } from './coins.ts'
import { rateOf } from './parameters.ts'

/**
 * Selects coins in advance, reads the transactions that created them, excludes coins that cannot be
 * read, and selects again under the wallet's lock. A transfer that expired spends all its coins
 * again, so that each of its transactions excludes all others.
 */
export async function prepare(chain: CoinChain<CardanoClient>, task: Task): Promise<Prepared> {
  const { row, asset, amount } = task
  const { context, network, client } = chain
  const parameters = await client.parameters()
  const rate = rateOf(network, parameters, row.fee_rate)
  const owner = await ownerOf(context.database, row)
  const index = owner.subAccountIndex
  const changeAddress = await context.addresses.change(network, owner)
  const to = row.destination_id as string
  const terms = { network, owner, changeAddress, rate, parameters }
  const { previous, unreadable } = await readCoins(
    async (excluded) => {
      const ttl = cardano.NOMINAL_END
      const planned = await selectCoins(context.database, task, terms, ttl, excluded).catch(
        notChosen,
      )
      return planned instanceof ChainError ? null : planned.coins
    },
    chain.previous,
    (coin, before) => cardano.unspendable(network, coin, before),
  )
  // This query comes last, because the validity period starts when the chain responds.
  const validUntil = await client.validUntil()
  return {
    kind: 'prepared',
    lock: 'wallet',
    async build(tx) {
      const awaits = await awaitsChange(tx, row, true)
      const ttl = BigInt(validUntil)
      const selection = await selectCoins(tx, task, terms, ttl, unreadable).catch(notChosen)
      if (selection instanceof ChainError) return refused(tx, row, selection, awaits, unreadable)
      // All coins of an expired transaction are spent again, so the transfer waits until each can
      // be read.
      if (!selection.coins.every(isReadable(unreadable))) return coinsUnreadable(unreadable)
      const parts = {
        selection,
        to,
        amount,
        changeAddress,
        changePath: pathOf(network, index, CHANGE_INDEX),
        ttl,
        previous,
      }
      const { coins, fee } = selection
      return spend({
        coins,
        fee,
        hold: holdOf(row, asset, fee),
        validUntil,
        previous,
        build: () => cardano.buildTransfer(network, parts),
      })
    },
  }
}

/** Parameters of a transfer's coin selection besides the coins themselves. */
interface SelectionTerms {
  network: Network
  owner: Awaited<ReturnType<typeof ownerOf>>
  changeAddress: string
  rate: ReturnType<typeof rateOf>
  parameters: Awaited<ReturnType<CardanoClient['parameters']>>
}

/**
 * Selects the coins of a transfer, without those that cannot be read. All coins of an expired
 * transaction of the transfer are required.
 * @throws ChainError if the coins do not cover the transfer or are no longer on the chain
 */
async function selectCoins(
  database: Queryable,
  { row, amount }: Task,
  { network, owner, changeAddress, rate, parameters }: SelectionTerms,
  ttl: bigint,
  unreadable: ReadonlyMap<string, string>,
): Promise<cardano.Selection> {
  const { coins: required, gone } = await coinsOfDead(database, row.id, network, owner)
  if (gone && required.length === 0)
    throw new ChainError('COINS_GONE', 'it expired, and its coins are no longer on the chain')
  const coins = (await cardanoCoins(database, row.wallet_id as string, network, owner)).filter(
    isReadable(unreadable),
  )
  return cardano.selectCoins(network, {
    coins,
    required,
    to: row.destination_id as string,
    amount,
    changeAddress,
    rate,
    ttl,
    parameters,
  })
}
