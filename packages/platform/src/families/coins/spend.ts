import { ChainError, type Asset, type UnsignedTransaction } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import {
  again,
  fail,
  wait,
  type Built,
  type Fail,
  type Hold,
  type Wait,
} from '../../engine/chain.ts'
import type { TransactionRow } from '../../engine/transaction.ts'

/**
 * How soon change of other transfers is looked for that nobody has told of: it comes when they are
 * signed, which wakes the next.
 */
const WAIT_FOR_CHANGE_MS = 2000
/** How soon coins are tried again that could not be read. */
const WAIT_FOR_COINS_MS = 30_000
/** How soon coins are chosen again where those that were foreseen are gone. */
const CHOOSE_AGAIN_MS = 50

interface Choice {
  coins: readonly { txid: string; vout: number }[]
  fee: bigint
  /**
   * The part of the fee that the wallet pays beside the amount; absent: the fee is paid out of the
   * coins.
   */
  hold?: Hold
  validUntil?: number
  /** What the coins come from, as far as it was foreseen. */
  previous: ReadonlyMap<string, string>
  build(): UnsignedTransaction
}

/**
 * Builds on the chosen coins. Where they are not those that were foreseen, the next round asks what
 * they come from.
 */
export function spend({ coins, fee, hold, validUntil, previous, build }: Choice): Built | Wait {
  if (coins.some(({ txid }) => !previous.has(txid))) return again(CHOOSE_AGAIN_MS)
  return {
    kind: 'built',
    unsigned: build(),
    worst: fee,
    fee,
    coins: coins.map(({ txid, vout }) => ({ txid, vout })),
    ...(hold === undefined ? {} : { hold }),
    ...(validUntil === undefined ? {} : { validUntil }),
  }
}

/** The wallet that sends pays its own fee. */
export const holdOf = (row: TransactionRow, asset: Asset, amount: bigint): Hold => ({
  wallet: row.wallet_id as string,
  asset,
  amount,
  noted: 'fee_reserve',
  kept: 0n,
})

/** Why coins cannot be chosen; any other error is thrown on. */
export function notChosen(error: unknown): ChainError {
  if (error instanceof ChainError) return error
  throw error
}

/**
 * Whether change of another transfer, which is being signed or replaced, will still come to the
 * wallet. Asked before its coins are read: change that comes in between is seen then.
 * @param withBlock change can be spent only once a block holds it
 */
export async function awaitsChange(
  tx: Queryable,
  row: TransactionRow,
  withBlock: boolean,
): Promise<boolean> {
  const found = await tx.one<{ awaits: boolean }>(
    `select exists (select 1 from utxos u join chain_transactions c on c.workspace_id = u.workspace_id and c.id = u.spent_by
                    where u.workspace_id = $4 and u.wallet_id = $1 and c.state = 'BUILT' and c.transaction_id <> $2)
       or exists (select 1 from utxos where workspace_id = $4 and wallet_id = $1 and contested and spent_by is null)
       or $3 and exists (select 1 from utxos where workspace_id = $4 and wallet_id = $1 and origin = 'change' and spendable
                         and block_height is null and spent_by is null) awaits`,
    [row.wallet_id, row.id, withBlock, row.workspace_id],
  )
  return found?.awaits === true
}

/**
 * The end, or the wait, of a transfer that the wallet's coins do not cover.
 * @param unreadable why coins were left out, by outpoint
 */
export function notCovered(
  error: ChainError,
  awaits: boolean,
  unreadable: ReadonlyMap<string, string> = new Map(),
): Wait | Fail {
  if (unreadable.size > 0 && !awaits) return coinsUnreadable(unreadable)
  if (awaits)
    return wait('COINS', 'waits for the change of an earlier transfer', WAIT_FOR_CHANGE_MS)
  return fail(
    `the wallet's coins do not cover the amount and a network fee at this rate: ${error.message}`,
  )
}

/** @param unreadable why coins cannot be spent, by outpoint; at least one */
export function coinsUnreadable(unreadable: ReadonlyMap<string, string>): Wait {
  const [[place, reason] = ['', '']] = unreadable
  const others = unreadable.size > 1 ? ` and ${unreadable.size - 1} more` : ''
  return wait(
    'COINS',
    `waits for coins that cannot be spent now: ${place} (${reason})${others}`,
    WAIT_FOR_COINS_MS,
  )
}
