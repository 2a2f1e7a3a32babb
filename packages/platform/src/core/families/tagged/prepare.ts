import type { Network } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import { wait, type Fail, type Prepared, type Task, type Wait } from '../../engine/chain.ts'
import { chosenRate } from '../../engine/fee-rate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { sequenceOf } from '../sequence.ts'
import { sourcePath } from '../source-path.ts'
import type { Tagged } from './tagged.ts'

/**
 * Number of short retries while the endpoint does not return the account: not every endpoint has an
 * account yet that its first deposit has just created.
 */
const SOON_MAX = 20
const RETRY_MS = 1000
const LATER_MS = 30_000

/** Prepares a payment, which takes the lowest free sequence under the account's lock. */
export async function prepare(
  chain: Tagged,
  { row, asset, amount }: Task,
): Promise<Prepared | Wait | Fail> {
  const { context, network, client, dialect } = chain
  const [account, to, tag] = [
    row.source_id as string,
    row.destination_id as string,
    row.address_tag,
  ]
  const fee = await chosenRate(chain, row.fee_rate, row.fee_level)
  const state = await client.account(account)
  // The account has received the funds that the transfer spends. An endpoint that does not return
  // it lags behind or has another problem.
  if (!state) {
    const inMs = row.attempts < SOON_MAX ? RETRY_MS : LATER_MS
    return wait(
      'ENDPOINT',
      'the endpoint does not return the account, although it has received coins',
      inMs,
    )
  }
  const create = (await client.account(to)) === null
  const key = await context.keys.get(row.workspace_id, network.curve)
  const path = await sourcePath(context.database, row, network)
  const publicKey = key.at(path)
  // This query comes last, because the validity period starts when the chain responds.
  const validUntil = await client.validUntil()
  return {
    kind: 'prepared',
    lock: 'account',
    needsAbsence: create && dialect.creates,
    async build(tx) {
      if (create && (await isBeingCreated(tx, row, network, to))) {
        return wait(
          'EARLIER_TRANSFER',
          'it waits for the transfer that creates the destination account',
          RETRY_MS,
        )
      }
      const sequence = await sequenceOf(tx, row, account, state.sequence)
      if (typeof sequence !== 'bigint') return sequence
      const unsigned = dialect.pay(network, {
        to,
        tag,
        amount,
        fee,
        sequence,
        validUntil,
        create,
        publicKey,
        path,
      })
      const hold = {
        wallet: row.wallet_id as string,
        asset,
        amount: fee,
        noted: 'fee_reserve' as const,
        reserve: state.reserve,
      }
      return {
        kind: 'built',
        unsigned,
        worst: fee,
        account,
        nonce: sequence,
        validUntil,
        fee,
        hold,
      }
    },
  }
}

/**
 * Whether another transfer of ours is about to create the account. On Stellar two creations exclude
 * each other, and the second would only cost its fee.
 */
async function isBeingCreated(
  tx: Queryable,
  row: TransactionRow,
  network: Network,
  to: string,
): Promise<boolean> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `create ${network.code} ${to}`,
  ])
  const other = await tx.one(
    `select 1 from transactions where network = $1 and destination_id = $2 and id <> $3
       and kind = 'WITHDRAWAL' and status = 'pending'
       and state in ('SIGNING', 'SIGNED', 'BROADCASTING', 'CONFIRMING') limit 1`,
    [network.code, to, row.id],
  )
  return other !== undefined
}
