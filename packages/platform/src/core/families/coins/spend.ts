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
import { IS_FROZEN } from './choosable.ts'

/**
 * Milliseconds until change of other transfers is checked again if nothing wakes the transfer
 * before. Change becomes available when other transfers are signed, which wakes the next one.
 */
const WAIT_FOR_CHANGE_MS = 2000
/** Milliseconds until coins that could not be read are tried again. */
const WAIT_FOR_COINS_MS = 30_000
/**
 * Milliseconds until coins are selected again if those selected in advance are no longer available.
 */
const CHOOSE_AGAIN_MS = 50

interface Choice {
  coins: readonly { txid: string; vout: number }[]
  fee: bigint
  /**
   * The part of the fee that the wallet pays in addition to the amount; absent: the fee is paid out
   * of the coins.
   */
  hold?: Hold
  validUntil?: number
  /** Transactions that created the coins, for those coins that were selected in advance. */
  previous: ReadonlyMap<string, string>
  build(): UnsignedTransaction
}

/**
 * Builds a transaction with the selected coins. If they differ from those selected in advance, the
 * next attempt reads the transactions that created them.
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

/** Returns the fee reservation of the sending wallet, which pays its own fee. */
export const holdOf = (row: TransactionRow, asset: Asset, amount: bigint): Hold => ({
  wallet: row.wallet_id as string,
  asset,
  amount,
  noted: 'fee_reserve',
  reserve: 0n,
})

/** Returns the reason why coins cannot be selected; rethrows any other error. */
export function notChosen(error: unknown): ChainError {
  if (error instanceof ChainError) return error
  throw error
}

/**
 * Whether change of another transfer that is being signed or replaced will still arrive in the
 * wallet. Must be called before its coins are read, so that change arriving in between is seen.
 * @param withBlock whether change can only be spent once it is in a block
 */
export async function awaitsChange(
  tx: Queryable,
  row: TransactionRow,
  withBlock: boolean,
): Promise<boolean> {
  const match = await tx.one<{ awaits: boolean }>(
    `select exists (select 1 from utxos u
                    join chain_transactions c on c.workspace_id = u.workspace_id
                    and c.id = u.spent_by
                    where u.workspace_id = $4 and u.wallet_id = $1 and c.state = 'BUILT'
                      and c.transaction_id <> $2)
       or exists (select 1 from utxos where workspace_id = $4 and wallet_id = $1 and contested
         and spent_by is null)
       or $3 and exists (select 1 from utxos where workspace_id = $4 and wallet_id = $1
         and origin = 'change' and spendable
                         and block_height is null and spent_by is null) awaits`,
    [row.wallet_id, row.id, withBlock, row.workspace_id],
  )
  return match?.awaits === true
}

/** Whether the caller has frozen coins of the transfer's wallet, which could pay it otherwise. */
async function hasFrozen(tx: Queryable, row: TransactionRow): Promise<boolean> {
  const frozen = await tx.one(
    `select 1 from utxos u where u.workspace_id = $2 and u.wallet_id = $1 and u.spent_by is null
       and u.spendable and ${IS_FROZEN} limit 1`,
    [row.wallet_id, row.workspace_id],
  )
  return frozen !== undefined
}

/**
 * Returns the failure or the wait of a transfer for which no coins can be selected. More coins than fit
 * into one transaction can become necessary after the transfer was created, when larger ones are spent.
 * @param awaits whether change will still arrive
 * @param unreadable the reason for each excluded coin, by outpoint
 */
export async function refused(
  tx: Queryable,
  row: TransactionRow,
  error: ChainError,
  awaits: boolean,
  unreadable: ReadonlyMap<string, string>,
): Promise<Wait | Fail> {
  if (
    error.code === 'INSUFFICIENT' &&
    !awaits &&
    unreadable.size === 0 &&
    (await hasFrozen(tx, row))
  )
    return wait('COINS', 'it waits for coins that the caller has frozen', WAIT_FOR_COINS_MS)
  if (error.code === 'INSUFFICIENT') return notCovered(error, awaits, unreadable)
  if (error.code === 'TOO_MANY_INPUTS') return wait('COINS', error.message, WAIT_FOR_COINS_MS)
  return fail(error.message)
}

/**
 * Returns the failure or the wait of a transfer that the wallet's coins do not cover.
 * @param awaits whether change will still arrive
 * @param unreadable the reason for each excluded coin, by outpoint
 */
function notCovered(
  error: ChainError,
  awaits: boolean,
  unreadable: ReadonlyMap<string, string>,
): Wait | Fail {
  if (unreadable.size > 0 && !awaits) return coinsUnreadable(unreadable)
  if (awaits)
    return wait('COINS', 'it waits for the change of an earlier transfer', WAIT_FOR_CHANGE_MS)
  return fail(
    `the wallet's coins do not cover the amount and a network fee at this rate: ${error.message}`,
  )
}

/**
 * Returns the wait for coins that cannot be spent now.
 * @param unreadable the reason for each coin, by outpoint; at least one
 */
export function coinsUnreadable(unreadable: ReadonlyMap<string, string>): Wait {
  const [[place, reason] = ['', '']] = unreadable
  const others = unreadable.size > 1 ? ` and ${unreadable.size - 1} more` : ''
  return wait(
    'COINS',
    `it waits for coins that cannot be spent now: ${place} (${reason})${others}`,
    WAIT_FOR_COINS_MS,
  )
}
