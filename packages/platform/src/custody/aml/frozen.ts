import type { Registry } from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { emit } from '../../core/ledger/post.ts'
import type { Environment } from '../../core/environment.ts'
import type { Logger } from 'pino'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { RiskLevel } from './levels.ts'

interface Services {
  environment: Environment
  registry: Registry
  log: Logger
}

/** A row of `frozen_addresses`: one freeze event. */
export interface FrozenRow {
  id: string
  workspace_id: string
  sub_account_id: string
  space: string
  address_key: string
  address: string
  address_tag: string | null
  asset: string
  source: string
  risk_level: string
  transaction_id: string
  frozen_at: Date
  unfrozen_at: Date | null
}

/**
 * An address that prevents a transaction, and the reason. `freezeId` is set if the address is
 * already on the frozen list.
 */
export interface Hit {
  key: string
  address: string
  tag: string | null
  source: string
  level: RiskLevel
  freezeId: string | null
}

export function presentFrozen(row: FrozenRow, registry: Registry) {
  return {
    asset: row.asset,
    network: registry.asset(row.asset)?.network ?? row.space,
    address: row.address,
    address_tag: row.address_tag,
    source: row.source,
    risk_level: row.risk_level,
    transaction_id: row.transaction_id,
    frozen_at: row.frozen_at.toISOString(),
  }
}

/**
 * Takes an exclusive lock on freezing, holding and unfreezing in one sub-account until the database
 * transaction ends.
 */
export async function lockFreezing(tx: Queryable, subAccountId: string): Promise<void> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`aml ${subAccountId}`])
}

/**
 * Takes a shared lock that prevents freezing in this sub-account until the database transaction
 * ends; several transactions may hold it. Like {@link lockFreezing}, it must be taken before the
 * lock of any account or row.
 */
export async function holdOffFreezing(tx: Queryable, subAccountId: string): Promise<void> {
  await tx.query('select pg_advisory_xact_lock_shared(hashtextextended($1, 0))', [
    `aml ${subAccountId}`,
  ])
}

type Screened = Pick<TransactionRow, 'id' | 'workspace_id' | 'sub_account_id'>
interface FrozenQuery {
  space: string
  keys: readonly string[]
}

/**
 * Returns which of these addresses are frozen now. Freezes from which this transaction was released
 * are not included.
 */
export async function frozenAmong(
  database: Queryable,
  row: Screened,
  o: FrozenQuery,
): Promise<FrozenRow[]> {
  return database.query<FrozenRow>(
    `select f.* from frozen_addresses f
     where f.workspace_id = $5 and f.sub_account_id = $1 and f.space = $2
       and f.address_key = any($3) and f.unfrozen_at is null
       and ${NOT_RELEASED}`,
    [row.sub_account_id, o.space, o.keys, row.id, row.workspace_id],
  )
}

const NOT_RELEASED = `not exists (select 1 from aml_holds h
  join frozen_addresses e on e.workspace_id = h.workspace_id and e.id = h.freeze_id
  where h.workspace_id = $5 and h.transaction_id = $4 and h.released_at is not null
    and e.space = f.space and e.address_key = f.address_key)`

/** Returns the addresses that an unfreeze has permanently cleared for a transaction. */
export async function clearedFor(database: Queryable, row: Screened): Promise<Set<string>> {
  const rows = await database.query<{ address_key: string }>(
    `select e.address_key from aml_holds h
      join frozen_addresses e on e.workspace_id = h.workspace_id and e.id = h.freeze_id
     where h.workspace_id = $2 and h.transaction_id = $1 and h.released_at is not null`,
    [row.id, row.workspace_id],
  )
  return new Set(rows.map((row) => row.address_key))
}

/**
 * Returns the hits that prevent a transaction now; addresses may have been frozen or unfrozen since
 * it was screened. Call it under {@link lockFreezing}. Null: no hit remains, but the provider was
 * not queried because of the earlier hit, so the transaction must be screened again.
 */
export async function confirmHits(
  tx: Queryable,
  row: Screened,
  request: FrozenQuery,
  hits: readonly Hit[],
): Promise<Hit[] | null> {
  const matches = hits.filter(({ freezeId }) => freezeId === null)
  for (const freeze of await frozenAmong(tx, row, request)) {
    if (!matches.some(({ key }) => key === freeze.address_key)) {
      matches.push({
        key: freeze.address_key,
        address: freeze.address,
        tag: freeze.address_tag,
        source: freeze.source,
        level: freeze.risk_level as RiskLevel,
        freezeId: freeze.id,
      })
    }
  }
  return matches.length === 0 && hits.length > 0 ? null : matches
}

/**
 * Freezes the addresses that are not frozen yet, and records each freeze as holding the
 * transaction. Call it under {@link lockFreezing}.
 */
export async function hold(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  space: string,
  hits: readonly Hit[],
): Promise<void> {
  const at = new Date(services.environment.now())
  for (const hit of hits) {
    const created = await tx.one<FrozenRow>(
      `insert into frozen_addresses (id, workspace_id, sub_account_id, space, address_key, address,
        address_tag, asset, source,
        risk_level, transaction_id, frozen_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
       on conflict (workspace_id, sub_account_id, space, address_key)
         where unfrozen_at is null do nothing returning *`,
      [
        services.environment.uuid(),
        row.workspace_id,
        row.sub_account_id,
        space,
        hit.key,
        hit.address,
        hit.tag,
        row.asset,
        hit.source,
        hit.level,
        row.id,
        at,
      ],
    )
    if (created) {
      await emit(
        tx,
        row.workspace_id,
        row.sub_account_id,
        'address.frozen',
        stringifyJson(presentFrozen(created, services.registry)),
      )
    }
    const owner = { workspaceId: row.workspace_id, subAccountId: row.sub_account_id as string }
    const freeze = created ?? (await findFrozen(tx, owner, space, [hit.key]))
    if (!freeze) throw new Error('a frozen address disappeared while its row was locked')
    await tx.query(
      `insert into aml_holds (workspace_id, transaction_id, freeze_id, held_at)
        values ($4, $1, $2, $3) on conflict do nothing`,
      [row.id, freeze.id, at, row.workspace_id],
    )
    if (created)
      services.log.warn(
        { transaction: row.id, source: hit.source, level: hit.level },
        'an address was frozen',
      )
  }
}

/** Whether a freeze holds the transaction. Call it under {@link lockFreezing}. */
export async function isHeld(tx: Queryable, row: Screened): Promise<boolean> {
  return (
    (await tx.one(
      `select 1 from aml_holds where workspace_id = $2 and transaction_id = $1
        and released_at is null limit 1`,
      [row.id, row.workspace_id],
    )) !== undefined
  )
}

/**
 * Returns the frozen address of a sub-account, or undefined. Call it under {@link lockFreezing} if
 * the freeze is going to be lifted.
 */
export async function findFrozen(
  tx: Queryable,
  { workspaceId, subAccountId }: { workspaceId: string; subAccountId: string },
  space: string,
  keys: readonly string[],
): Promise<FrozenRow | undefined> {
  return tx.one<FrozenRow>(
    `select * from frozen_addresses
     where workspace_id = $4 and sub_account_id = $1 and space = $2 and address_key = any($3)
       and unfrozen_at is null
     order by frozen_at, id limit 1`,
    [subAccountId, space, keys, workspaceId],
  )
}

/**
 * Ends a freeze event and releases the transactions that it held. Call it under {@link
 * lockFreezing}.
 */
export async function lift(
  tx: Queryable,
  freeze: FrozenRow,
  apiKey: string,
  at: Date,
): Promise<void> {
  await tx.query(
    `update frozen_addresses set unfrozen_at = $2, unfrozen_by = $3 where workspace_id = $4
      and id = $1 and unfrozen_at is null`,
    [freeze.id, at, apiKey, freeze.workspace_id],
  )
  await tx.query(
    `update aml_holds set released_at = $2 where workspace_id = $3 and freeze_id = $1
      and released_at is null`,
    [freeze.id, at, freeze.workspace_id],
  )
  // The released transactions are due now; the workers check whether another freeze holds them.
  await tx.query(
    `update transactions set next_run_at = $2
     where workspace_id = $3 and id in (select transaction_id from aml_holds where workspace_id = $3
       and freeze_id = $1)
      and state in ('AML_HELD', 'FROZEN') and lease_token is null`,
    [freeze.id, at, freeze.workspace_id],
  )
}
