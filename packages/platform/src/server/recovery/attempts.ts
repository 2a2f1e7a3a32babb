import { CHANGE_INDEX, traitsOf } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import { isConsolidation, type TransactionRow } from '../../core/engine/transaction.ts'
import type { Group } from './group.ts'
import { NotAdopted, type Opened } from './open.ts'
import { insertChainTransaction } from '../../core/engine/insert.ts'
import { openAccount } from '../../core/engine/nonce-order.ts'
import { isStaking } from '../../custody/staking/steps.ts'
import { stepUnderWay } from '../../custody/staking/recorded.ts'

interface Services {
  environment: Environment
}

interface Stored {
  id: string
  workspace_id: string
  transaction_id: string
  state: string
  attempt: number
  bytes: string
}

/**
 * Writes the signed bytes of each attempt, the coins that they spend and the change that they
 * create. Transactions built here for the same purpose, or with the same coins or nonces, that were
 * never submitted to a node are voided.
 * @returns whether an attempt of the transaction was signed here before
 */
export async function writeAttempts(
  services: Services,
  tx: Queryable,
  group: Group,
  row: TransactionRow,
  end: number | null,
): Promise<boolean> {
  const stored = await tx.query<Stored>(
    `select id, workspace_id, transaction_id, state, attempt, unsigned->>'bytes' bytes
      from chain_transactions
     where workspace_id = $2 and transaction_id = $1 order by attempt for update`,
    [row.id, row.workspace_id],
  )
  const signed = stored.filter(({ state }) => state !== 'BUILT' && state !== 'VOID')
  for (const built of stored.filter(({ state }) => state === 'BUILT')) await giveWay(tx, built)
  let first = signed[0]?.id ?? null
  for (const each of group.attempts) {
    const id = services.environment.uuid()
    const { network, decoded, unsigned, recorded } = each
    const isAccount = traitsOf(network).deposits !== 'spendable'
    const account = isAccount ? group.from : null
    await freePlace(services, tx, each, row, account)
    const step = decoded.action?.kind ?? null
    const isLater = step !== null && isStaking(row) && stepUnderWay(row) !== step
    const replacement =
      recorded.purpose === 'cancel' ? await noteCancel(services, tx, row, recorded.at) : null
    await insertChainTransaction(tx, {
      id,
      workspace_id: row.workspace_id,
      transaction_id: row.id,
      network: network.code,
      account,
      nonce: decoded.nonce,
      unsigned,
      fee_max: decoded.fee_max,
      valid_until: decoded.valid_until ?? end,
      step,
      replaces: step === null ? first : null,
      replacement_id: replacement,
      signed: { ...each.signed, at: new Date(recorded.at) },
      // Only one call of a staking transaction is pending at a time; the later ones wait for it.
      state: isLater ? 'VOID' : 'SIGNED',
    })
    first ??= id
    if (account !== null && decoded.nonce !== null) await openAccount(tx, network.code, account)
    await writeCoins(tx, each, row, id, signed.length + group.attempts.length > 1)
  }
  return signed.length > 0
}

/**
 * Voids a transaction that was built here but not submitted to any node, and releases its coins; it
 * is rebuilt with others.
 */
async function giveWay(tx: Queryable, built: Stored): Promise<void> {
  await tx.query(
    `update chain_transactions set state = 'VOID' where workspace_id = $2 and id = $1`,
    [built.id, built.workspace_id],
  )
  await tx.query('update utxos set spent_by = null where workspace_id = $2 and spent_by = $1', [
    built.id,
    built.workspace_id,
  ])
}

async function freePlace(
  services: Services,
  tx: Queryable,
  opened: Opened,
  row: TransactionRow,
  account: string | null,
): Promise<void> {
  const { network, decoded, coins } = opened
  const others = await tx.query<Stored>(
    `select c.id, c.workspace_id, c.transaction_id, c.state, c.attempt, '' bytes
      from chain_transactions c
     where c.workspace_id = $6 and c.network = $1 and c.transaction_id <> $2
       and c.state not in ('VOID', 'REPLACED', 'EXPIRED')
       and (c.account = $3 and c.nonce = $4 or c.id in (select spent_by from utxos u
         where u.workspace_id = $6 and u.network = $1
         and u.txid || ':' || u.vout = any($5))) for update`,
    [
      network.code,
      row.id,
      account,
      decoded.nonce?.toString() ?? null,
      coins.map(({ txid, vout }) => `${txid}:${vout}`),
      row.workspace_id,
    ],
  )
  for (const other of others) {
    if (other.state !== 'BUILT')
      throw new NotAdopted(
        `the transaction ${other.transaction_id} in this database was signed for the same coins or the same nonce of its account`,
      )
    await giveWay(tx, other)
    await tx.query(
      `update transactions set state = case when plan->>'float_taken' is not null then 'FUELING'
         else 'QUEUED' end, waiting = null, lease_until = null,
         lease_token = null, next_run_at = $2, last_error = 'what it was built on is spent'
       where workspace_id = $3 and id = $1 and state = 'SIGNING'`,
      [other.transaction_id, new Date(services.environment.now()), other.workspace_id],
    )
  }
}

/** Records that a transfer was cancelled by its caller, whose signed request is lost. */
async function noteCancel(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  at: number,
): Promise<string> {
  const id = services.environment.uuid()
  await tx.query(
    `insert into replacements (id, workspace_id, transaction_id, kind, state, created_at,
      updated_at)
     values ($1, $4, $2, 'CANCEL', 'DONE', $3, $3)`,
    [id, row.id, new Date(at), row.workspace_id],
  )
  return id
}

/**
 * Writes the coins that an attempt spends and creates. An unknown coin belongs to a deposit, which
 * the scanner credits at its block.
 */
async function writeCoins(
  tx: Queryable,
  { network, decoded, unsigned, coins, signed }: Opened,
  row: TransactionRow,
  id: string,
  contested: boolean,
): Promise<void> {
  for (const [at, { txid, vout, value, pathIndex }] of coins.entries()) {
    await tx.query(
      `insert into utxos (network, txid, vout, address, wallet_id, value, path_index, origin,
        spendable, spent_by, workspace_id)
       values ($1, $2, $3, $4, $5, $6, $7, 'deposit', false, $8, $9)
       on conflict (network, txid, vout) do update set spent_by = excluded.spent_by`,
      [
        network.code,
        txid,
        vout,
        decoded.from[at],
        row.wallet_id,
        value.toString(),
        pathIndex,
        id,
        row.workspace_id,
      ],
    )
  }
  const returned =
    decoded.change && unsigned.change
      ? { ...decoded.change, output: unsigned.change.output, index: unsigned.change.path[2] }
      : isConsolidation(row) && decoded.payments[0]
        ? { ...decoded.payments[0], output: 0, index: CHANGE_INDEX }
        : null
  if (returned) {
    await tx.query(
      `insert into utxos (network, txid, vout, address, wallet_id, value, path_index, origin,
        spendable, contested, workspace_id)
       values ($1, $2, $3, $4, $5, $6, $7, 'change', not $10, $8 or $10, $9)
       on conflict (network, txid, vout) do update set origin = 'change',
         spendable = excluded.spendable`,
      [
        network.code,
        signed.hash,
        returned.output,
        returned.address,
        row.wallet_id,
        returned.amount.toString(),
        returned.index,
        contested,
        row.workspace_id,
        isConsolidation(row),
      ],
    )
  }
}
