import { formatAmount, type Registry } from '@custody/chains'
import { z } from 'zod'
import { exact, USD_DECIMALS } from '../../core/decimals.ts'
import type { Database } from '../../core/database/pool.ts'
import { presentNow, presentTransaction, transactionNowShape } from '../../core/engine/present.ts'
import { replacementsOf } from '../../core/engine/replacement.ts'
import { settlementReference } from '../../core/engine/settlement.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { time } from '../people/schemas.ts'
import { findTransaction } from '../../custody/transactions/find-transaction.ts'
import {
  presentReplacement,
  replacementShape,
} from '../../custody/transactions/present-replacement.ts'
import { SUB_ACCOUNT, subAccountParams } from './mirror.ts'

interface Services {
  database: Database
  registry: Registry
}

const ROWS_MAX = 1000

const person = z.object({ id: z.uuid(), email: z.string(), name: z.string() })

const storyShape = z.object({
  transaction: transactionNowShape.extend({ replacements: z.array(replacementShape) }),
  network: z.string(),
  states: z
    .array(z.object({ state: z.string(), at: time, reason: z.string().nullable() }))
    .meta({ description: 'Oldest first' }),
  request: z
    .object({
      api_key: z.string(),
      label: z.string().nullable(),
      person: person.nullable(),
      method: z.string(),
      uri: z.string(),
      body: z.string(),
      claims: z.record(z.string(), z.unknown()),
      received_at: time,
    })
    .nullable()
    .meta({ description: 'The signed request that caused it; null: the platform created it' }),
  receipts: z
    .array(z.int())
    .meta({ description: 'Signer nodes that received the request and signed a receipt' }),
  screening: z.array(
    z.object({
      provider: z.string(),
      address: z.string(),
      risk_level: z.string().nullable(),
      at: time,
    }),
  ),
  holds: z
    .array(
      z.object({
        address: z.string(),
        source: z.string(),
        risk_level: z.string(),
        held_at: time,
        released_at: time.nullable(),
      }),
    )
    .meta({ description: 'Frozen addresses that put it on hold' }),
  signed_by: z.array(z.object({ attempt: z.int(), purpose: z.string(), nodes: z.array(z.int()) })),
  attempts: z.array(
    z.object({
      attempt: z.int(),
      kind: z.string(),
      hash: z.string().nullable(),
      state: z.string(),
      fee_max: z.number(),
      fee: z.number().nullable(),
      nodes: z.array(z.int()).nullable(),
      at: time,
      broadcast_at: time.nullable(),
      block_height: z.string().nullable(),
      replaced_by: z.string().nullable(),
    }),
  ),
  fee: z.object({
    planned: z.number().meta({
      description: 'The estimate; after the transaction is built, the maximum that its bytes allow',
    }),
    paid: z.number().nullable(),
    asset: z.string(),
  }),
  confirmations: z.object({
    now: z.int(),
    needed: z.int().nullable().meta({ description: 'Null: the chain’s own finality applies' }),
  }),
  ledger: z.array(
    z.object({
      at: time,
      entry: z.string(),
      account: z.string(),
      amount: z.number(),
      asset: z.string(),
    }),
  ),
  related: z
    .array(
      z.object({ id: z.uuid(), type: z.string(), status: z.string(), hash: z.string().nullable() }),
    )
    .meta({ description: 'Transactions that the platform created for this one, such as fuel' }),
  events: z.array(z.object({ id: z.uuid(), type: z.string(), at: time })),
  deliveries: z.array(
    z.object({
      id: z.uuid(),
      webhook: z.uuid(),
      url: z.string().meta({ description: 'Where the webhook is delivered' }),
      event: z.string(),
      status: z.string(),
      attempts: z.int(),
      at: time,
    }),
  ),
  explorer_url: z.string().nullable(),
})

/** Returns all data about one transaction in one response. */
export const readTimeline = panelEndpoint({
  method: 'GET',
  path: `${SUB_ACCOUNT}/transactions/{id}/story`,
  summary: 'Read the full history of a transaction',
  needs: 'viewer',
  params: z.strictObject({ ...subAccountParams, id: z.string() }),
  response: storyShape,
  async handler({ caller, params }, services: Services) {
    const row = await findTransaction(services, caller, params.id)
    const { database, registry } = services
    const replacements = await replacementsOf(database, row)
    const references = [row.id, ...replacements.map(({ id }) => id)]
    const [states, request, screening, holds, attempts, ledger, related, events] = await partsOf(
      services,
      caller,
      row,
      references,
    )
    const deliveries = await deliveriesOf(services, caller, events)
    const shown = presentNow(row, registry)
    const network = registry.network(row.network)
    const paid = row.status === 'confirmed' || attempts.some(({ fee }) => fee !== null)
    return {
      body: {
        transaction: { ...shown, replacements: replacements.map(presentReplacement) },
        network: row.network,
        states,
        request,
        receipts: row.receipts
          .map((receipt) => Number((receipt as { node?: unknown }).node))
          .filter(Number.isInteger)
          .sort(),
        screening,
        holds,
        signed_by: attempts.flatMap(({ attempt, kind, nodes }) =>
          nodes === null ? [] : [{ attempt, purpose: kind, nodes }],
        ),
        attempts,
        fee: {
          planned: attempts.at(-1)?.fee_max ?? shown.fee,
          paid: paid ? shown.fee : null,
          asset: row.fee_asset,
        },
        confirmations: { now: row.confirmations, needed: network?.confirmations ?? null },
        ledger,
        related: related.map((each) => {
          const { id, type, status, hash } = presentTransaction(each, registry)
          return { id, type, status, hash }
        }),
        events,
        deliveries,
        explorer_url:
          network?.explorer_transaction_url && row.hash
            ? `${network.explorer_transaction_url}${row.hash}`
            : null,
      },
    }
  },
})

/**
 * Reads the records of a transaction from all tables, such as its states, its request and its
 * screenings.
 */
function partsOf(services: Services, caller: Caller, row: TransactionRow, references: string[]) {
  const { database } = services
  return Promise.all([
    database.query(
      `select state, reason, at from transaction_states where workspace_id = $3
        and transaction_id = $1 order by id limit $2`,
      [row.id, ROWS_MAX, row.workspace_id],
    ),
    requestOf(services, row),
    database.query(
      `select provider, address_key address, risk_level, screened_at at from aml_screenings
     where workspace_id = $3 and transaction_id = $1 order by id limit $2`,
      [row.id, ROWS_MAX, row.workspace_id],
    ),
    database.query(
      `select f.address, f.source, f.risk_level, h.held_at, h.released_at from aml_holds h
       join frozen_addresses f on f.workspace_id = h.workspace_id and f.id = h.freeze_id
     where h.workspace_id = $3 and h.transaction_id = $1 order by h.held_at limit $2`,
      [row.id, ROWS_MAX, row.workspace_id],
    ),
    attemptsOf(services, row),
    ledgerOf(services, row, references),
    database.query<TransactionRow>(
      `select * from transactions where workspace_id = $3 and id in (
       select id from transactions where workspace_id = $3 and parent_id = $1
       union select fuel_id from fuel_parts where workspace_id = $3 and transaction_id = $1)
     order by created_at, id limit $2`,
      [row.id, ROWS_MAX, row.workspace_id],
    ),
    database.query<{ id: string; type: string; at: Date }>(
      `select uid id, type, created_at at from events where workspace_id = $2 and object = $1
        order by position limit $3`,
      [row.id, caller.workspaceId, ROWS_MAX],
    ),
  ])
}

/** Reads the deliveries of events to the webhooks of a sub-account. */
function deliveriesOf({ database }: Services, caller: Caller, events: readonly { id: string }[]) {
  return database.query(
    `select d.id, d.webhook_id webhook, w.url, d.event_uid event, d.status, d.tries attempts,
      d.created_at at
     from webhooks w join webhook_deliveries d on d.workspace_id = w.workspace_id
       and d.webhook_id = w.id and d.event_uid = any($1)
     where w.workspace_id = $2 and w.sub_account_id = $3 order by d.created_at, d.id limit $4`,
    [events.map(({ id }) => id), caller.workspaceId, caller.subAccountId, ROWS_MAX],
  )
}

/** Returns the signed request without its token. */
async function requestOf({ database }: Services, row: TransactionRow) {
  if (!row.request) return null
  const { api_key, token, method, uri, body } = row.request
  const existing = await database.one<{
    label: string | null
    id: string | null
    email: string | null
    name: string | null
  }>(
    `select u.label, p.id, p.email, p.name from api_users u left join people p on p.id = u.person_id
      where u.api_key::text = $1`,
    [api_key],
  )
  const { label = null, ...owner } = existing ?? { id: null }
  return {
    api_key,
    label,
    person: owner.id === null ? null : owner,
    method,
    uri,
    body,
    claims: JSON.parse(
      Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'),
    ) as Record<string, unknown>,
    received_at: row.created_at,
  }
}

const KINDS: Record<string, string> = { SPEED_UP: 'speed-up', CANCEL: 'cancel', AUTO: 'automatic' }

async function attemptsOf({ database, registry }: Services, row: TransactionRow) {
  const rows = await database.query<{
    attempt: number
    replacement: string | null
    step: string | null
    hash: string | null
    state: string
    fee_max: string
    fee: string | null
    created_at: Date
    broadcast_at: Date | null
    block_height: string | null
    signed_by: number[] | null
  }>(
    `select c.attempt, r.kind replacement, c.step, c.hash, c.state, c.fee_max::text, c.fee::text,
       c.created_at, c.broadcast_at,
       c.block_height::text, c.signed_by
     from chain_transactions c left join replacements r on r.workspace_id = c.workspace_id
       and r.id = c.replacement_id
     where c.workspace_id = $3 and c.transaction_id = $1 order by c.attempt limit $2`,
    [row.id, ROWS_MAX, row.workspace_id],
  )
  const decimals = registry.asset(row.fee_asset)?.decimals ?? 0
  const amount = (text: string) => exact(formatAmount(BigInt(text), decimals))
  // Of several conflicting transactions, this is the one that was mined.
  const winner = rows.find(({ state }) => state === 'CONFIRMED' || state === 'INCLUDED')
  return rows.map((each) => ({
    attempt: each.attempt,
    kind: KINDS[each.replacement ?? ''] ?? each.step ?? 'payment',
    hash: each.hash,
    state: each.state,
    fee_max: amount(each.fee_max),
    fee: each.fee === null ? null : amount(each.fee),
    at: each.created_at,
    broadcast_at: each.broadcast_at,
    block_height: each.block_height,
    replaced_by: each.state === 'REPLACED' ? (winner?.hash ?? null) : null,
    nodes: each.signed_by,
  }))
}

/** Maximum number of reorganisations after which a deposit's entries are still found. */
const GENERATIONS_MAX = 20

/** Returns the ledger entries of the transaction, or of the one that replaced it. */
async function ledgerOf(
  { database, registry }: Services,
  row: TransactionRow,
  references: readonly string[],
) {
  const named = [
    ...references,
    ...Array.from({ length: GENERATIONS_MAX }, (_, generation) => [
      `${row.id}:${generation}`,
      settlementReference({ id: row.id, plan: { generation: String(generation) } }),
    ]).flat(),
  ]
  const rows = await database.query<{
    at: Date
    entry: string
    account: string
    amount: string
    asset: string
  }>(
    // Lists the few existing kinds one after the other, because entries are indexed by kind and
    // reference.
    `with recursive kinds as (
       (select kind from ledger_entries where workspace_id = $2 order by kind limit 1)
       union all
       select (select e.kind from ledger_entries e where e.workspace_id = $2 and e.kind > k.kind
         order by e.kind limit 1) from kinds k
         where k.kind is not null
     )
     select e.created_at at, e.kind entry, a.kind account, p.amount::text, a.asset
     from kinds k join ledger_entries e on e.workspace_id = $2 and e.kind = k.kind
       and e.reference = any($1)
       join ledger_postings p on p.workspace_id = $2 and p.entry_id = e.id
       join ledger_accounts a on a.workspace_id = $2 and a.id = p.account_id
     order by e.id, a.id limit $3`,
    [named, row.workspace_id, ROWS_MAX],
  )
  return rows.map(({ amount, ...each }) => ({
    ...each,
    amount: exact(
      formatAmount(
        BigInt(amount),
        each.asset === 'USD' ? USD_DECIMALS : (registry.asset(each.asset)?.decimals ?? 18),
      ),
    ),
  }))
}
