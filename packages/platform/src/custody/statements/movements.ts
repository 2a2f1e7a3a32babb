import type { Queryable } from '../../core/database/pool.ts'
import {
  kindList,
  PARTS,
  partsOf,
  TANK_PARTS,
  type Part,
  type Parts,
  type StatementAccount,
} from './accounts.ts'
import { typeOf, type MovementType } from './types.ts'

/** A position in a statement: the time in microseconds since the Unix epoch, and the entry. */
export interface Position {
  at: string
  id: string
}

/** Beginning (inclusive) and end (exclusive) of a statement. */
export interface Period {
  from: Date
  to: Date
}

/** One movement; amounts in the asset's smallest unit. */
export interface Movement {
  position: Position
  at: Date
  type: MovementType
  /** Change of the balance without the network fee. */
  amount: bigint
  /** Network fee that was paid from the balance. */
  fee: bigint
  /** Change of each part; their sum is `amount - fee`. */
  changes: Parts
  /** Network fee that the gas tank paid for a wallet's movement. */
  tankFee: { asset: string; amount: bigint } | null
  transaction: {
    id: string
    kind: string
    hash: string | null
    asset: string
    counterparty: string | null
    sequenceId: string | null
  } | null
}

/**
 * Maximum number of postings of an account that are read by account. Entries of larger accounts are
 * read by time, because a page of them would otherwise read all of its postings.
 */
const SMALL = 20_000

const sumOf = (part: Part, account: StatementAccount): string => {
  const kinds = Object.entries(partsOf(account)).flatMap(([kind, of]) =>
    of === part ? [`'${kind}'`] : [],
  )
  return kinds.length === 0
    ? `0::numeric ${part}`
    : `coalesce(sum(p.amount) filter (where a.kind in (${kinds.join(', ')})), 0) ${part}`
}

/** SQL condition on `ledger_accounts a`, with the workspace as $1 and the owner as $2. */
const ownCondition = (account: StatementAccount): string =>
  `a.workspace_id = $1 and ${account.walletId === null ? 'a.wallet_id is null and a.asset = $2' : 'a.wallet_id = $2::uuid'}
    and a.kind in (${kindList(partsOf(account))})`

const ownValues = ({ workspaceId, walletId, asset }: StatementAccount): [string, string] => [
  workspaceId,
  walletId ?? asset.asset_name,
]

interface Row extends Record<Part, string> {
  id: string
  kind: string
  created_at: Date
  at: string
  tank_asset: string | null
  tank_fee: string | null
  transaction_id: string | null
  transaction_kind: string | null
  transaction_wallet: string | null
  transaction_asset: string | null
  transaction_amount: string | null
  transaction_state: string | null
  /** Whether a reorganisation has taken back an entry of the transaction. */
  is_reorganised: boolean | null
  hash: string | null
  source_id: string | null
  destination_id: string | null
  destination_type: string | null
  sequence_id: string | null
  rule_id: string | null
  is_refund: boolean
}

/** Selects movements of an account. */
export interface MovementQuery {
  account: StatementAccount
  period: Period
  /** The position after which they begin; null: the beginning of the period. */
  after: Position | null
  limit: number
  /** Number of postings up to which they are read by account; for tests. */
  small?: number
}

/**
 * Returns movements of a period in their order: the entries that change a part of the balance.
 * Reservations move nothing and are not included.
 */
export async function readMovements(
  database: Queryable,
  { account, period: { from, to }, after, limit, small = SMALL }: MovementQuery,
): Promise<Movement[]> {
  const own = ownCondition(account)
  const values = ownValues(account)
  const few = await database.one<{ is_small: boolean }>(
    `select count(*) <= ${small} is_small from (
       select 1 from ledger_accounts a join ledger_postings p on p.workspace_id = a.workspace_id
         and p.account_id = a.id
       where a.workspace_id = $1 and ${own} limit ${small + 1}) counted`,
    values,
  )
  const entries = few?.is_small
    ? `(select distinct p.entry_id from ledger_accounts a join ledger_postings p
         on p.workspace_id = a.workspace_id and p.account_id = a.id where ${own}) known
       join ledger_entries e on e.workspace_id = $1 and e.id = known.entry_id`
    : 'ledger_entries e'
  const rows = await database.query<Row>(
    `with listed as (
       select e.id, e.kind, e.reference, e.created_at, s.* from ${entries}
       cross join lateral (
         select ${PARTS.map((part) => sumOf(part, account)).join(', ')}
         from ledger_postings p join ledger_accounts a on a.workspace_id = p.workspace_id
           and a.id = p.account_id
         where p.workspace_id = $1 and p.entry_id = e.id and ${own}) s
       where e.workspace_id = $1 and e.created_at >= $3 and e.created_at < $4
         and ($5::bigint is null or (e.created_at, e.id) > (
           'epoch'::timestamptz + $5::bigint * interval '1 microsecond', $6::bigint))
         and (${PARTS.map((part) => `s.${part} <> 0`).join(' or ')})
       order by e.created_at, e.id limit $7
     )
     select l.id::text, l.kind, l.created_at,
       (extract(epoch from l.created_at) * 1000000)::bigint::text "at",
       ${PARTS.map((part) => `l.${part}::text`).join(', ')},
       f.asset tank_asset, f.fee::text tank_fee, t.id transaction_id, t.kind transaction_kind,
       t.wallet_id transaction_wallet, t.asset transaction_asset, t.amount::text transaction_amount,
       t.state transaction_state, t.plan ? 'generation' is_reorganised, t.hash, t.source_id,
       t.destination_id, t.destination_type,
       t.sequence_id, t.plan->>'rule_id' rule_id, exists (select 1 from invoice_refunds r
         where r.workspace_id = $1 and r.transaction_id = t.id) is_refund
     from listed l
     left join transactions t on t.workspace_id = $1 and t.id = case
       when l.reference ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:|$)'
       then left(l.reference, 36)::uuid end
     left join lateral (
       select a.asset, -sum(p.amount) fee from ledger_postings p join ledger_accounts a
         on a.workspace_id = p.workspace_id and a.id = p.account_id
       where $8 and p.workspace_id = $1 and p.entry_id = l.id and a.workspace_id = $1
         and a.wallet_id is null and a.kind in (${kindList(TANK_PARTS)})
       group by a.asset having sum(p.amount) <> 0 limit 1) f on true
     order by l.created_at, l.id`,
    [...values, from, to, after?.at ?? null, after?.id ?? null, limit, account.walletId !== null],
  )
  return rows.map((row) => movementOf(row, account))
}

function movementOf(row: Row, account: StatementAccount): Movement {
  const changes = Object.fromEntries(PARTS.map((part) => [part, BigInt(row[part])])) as Parts
  const change = totalOf(changes)
  const isOwn = row.transaction_wallet === account.walletId
  const entry = {
    kind: row.kind,
    transaction: row.transaction_kind,
    // After a reorganisation the state is that of a later entry; an executed payment moved its amount.
    isConfirmed:
      row.transaction_state === 'CONFIRMED' ||
      (row.is_reorganised === true && change <= -BigInt(row.transaction_amount ?? '0')),
    isOwn,
    isForward: row.rule_id !== null,
    isRefund: row.is_refund,
    isToExchange: row.destination_type === 'EXCHANGE',
    change,
  }
  const type = typeOf(entry, account.walletId === null)
  const amounts = {
    incoming: change,
    payment: -BigInt(row.transaction_amount ?? '0'),
    fee: 0n,
  }
  const amount = amounts[type.consistsOf]
  return {
    position: { at: row.at, id: row.id },
    at: row.created_at,
    type: type.name,
    amount,
    fee: amount - change,
    changes,
    tankFee:
      row.tank_asset === null || row.tank_fee === null
        ? null
        : { asset: row.tank_asset, amount: BigInt(row.tank_fee) },
    transaction:
      row.transaction_id === null
        ? null
        : {
            id: row.transaction_id,
            kind: row.transaction_kind as string,
            hash: row.hash,
            asset: row.transaction_asset as string,
            counterparty: type.consistsOf === 'incoming' ? row.source_id : row.destination_id,
            sequenceId: row.sequence_id,
          },
  }
}

/** Returns the sum of all parts. */
export const totalOf = (parts: Parts): bigint => PARTS.reduce((sum, part) => sum + parts[part], 0n)

/** Balances of a statement; `before`: after the movements up to and including a position. */
export interface Balances {
  opening: Parts
  closing: Parts
  before: Parts
}

/**
 * Returns the balances at the beginning and the end of a period. They are computed backwards from
 * the current balances of the accounts, so that a statement of recent days reads only these days.
 */
export async function readBalances(
  database: Queryable,
  account: StatementAccount,
  { from, to }: Period,
  after: Position | null,
): Promise<Balances> {
  const rows = await database.query<{
    kind: string
    opening: string
    closing: string
    before: string
  }>(
    `select a.kind, sum(a.balance - coalesce(m.since_from, 0))::text opening,
       sum(a.balance - coalesce(m.since_to, 0))::text closing,
       sum(a.balance - coalesce(m.since_after, 0))::text before
     from ledger_accounts a left join (
       select p.account_id, sum(p.amount) since_from,
         sum(p.amount) filter (where e.created_at >= $4) since_to,
         sum(p.amount) filter (where $5::bigint is null or (e.created_at, e.id) > (
           'epoch'::timestamptz + $5::bigint * interval '1 microsecond', $6::bigint)) since_after
       from ledger_accounts a join ledger_postings p on p.workspace_id = a.workspace_id
         and p.account_id = a.id
         join ledger_entries e on e.workspace_id = p.workspace_id and e.id = p.entry_id
       where ${ownCondition(account)} and e.workspace_id = $1 and e.created_at >= $3
       group by p.account_id) m on m.account_id = a.id
     where ${ownCondition(account)} group by a.kind`,
    [...ownValues(account), from, to, after?.at ?? null, after?.id ?? null],
  )
  const parts = partsOf(account)
  const summed = (column: 'opening' | 'closing' | 'before'): Parts => {
    const sums = Object.fromEntries(PARTS.map((part) => [part, 0n])) as Parts
    for (const row of rows) {
      const part = (parts as Record<string, Part | undefined>)[row.kind]
      if (part !== undefined) sums[part] += BigInt(row[column])
    }
    return sums
  }
  return { opening: summed('opening'), closing: summed('closing'), before: summed('before') }
}
