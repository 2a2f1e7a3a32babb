import type { Queryable } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { InvoiceException, InvoiceStatus, PaymentStatus, Payment, Terms } from './evaluate.ts'

interface Services {
  environment: Environment
  registry: Registry
}

/**
 * A row of `invoices`. Amounts are decimal strings: of fiat in millionths, of coins in the smallest
 * unit.
 */
export interface InvoiceRow {
  id: string
  workspace_id: string
  sub_account_id: string
  status: InvoiceStatus
  exception: InvoiceException | null
  fiat: string | null
  fiat_amount: string | null
  memo: string | null
  order_id: string | null
  payer: { email?: string; name?: string } | null
  webhook_url: string | null
  success_url: string | null
  failed_url: string | null
  tolerance: number
  selected: string | null
  cancelled_at: Date | null
  marked: 'settled' | 'invalid' | null
  marked_reason: string | null
  marked_at: Date | null
  version: number
  sequence_id: string | null
  expires_at: Date
  created_at: Date
  updated_at: Date
}

/**
 * A row of `invoice_offers`: an asset in which an invoice can be paid. `address` and its path are
 * null until the asset is chosen.
 */
export interface OfferRow {
  asset: string
  network: string
  amount: string
  rate: string | null
  rate_at: Date | null
  confirmations: number
  address: string | null
  address_tag: string | null
  path: number[] | null
  chosen_at: Date | null
}

/**
 * A payment to an invoice's address: a deposit, or, if `transaction_id` is null, a payment that is
 * or was in a mempool. `confirmations` as of the scan; 0 if it is in no block. `required`: number
 * of confirmations before it counts as settled. `hash`: null if no transaction lists the payment.
 */
export interface PaymentRow {
  transaction_id: string | null
  hash: string | null
  asset: string
  network: string
  amount: string
  status: PaymentStatus
  confirmations: number
  required: number
  block_height: number | null
  counts: boolean
  seen_at: Date
  /**
   * The relevant time of the payment: the last time at which the chain was known not to contain it.
   */
  since: Date
}

/** A transfer that refunded a payment. */
interface RefundRow {
  transaction_id: string
  asset: string
  amount: string
  status: 'pending' | 'confirmed' | 'failed'
  hash: string | null
}

/** An invoice with all data for its presentation. */
export interface Invoice {
  row: InvoiceRow
  offers: OfferRow[]
  payments: PaymentRow[]
  refunds: RefundRow[]
}

const OFFERS = `select invoice_id, asset, network, amount::text, rate::text, rate_at, confirmations,
  address, address_tag, path, chosen_at
  from invoice_offers where workspace_id = any($2) and invoice_id = any($1) order by invoice_id,
    position`

/**
 * SQL for the payments to the invoice's addresses, in any asset. A tag that was never issued
 * belongs to no invoice.
 */
const PAYMENTS = `select o.invoice_id, t.id transaction_id, t.hash, t.asset, t.network,
    t.amount::text, t.state, t.created_at seen_at,
    d.known_at, d.block_height::text, s.height::text scanned, p.status noted, m.waiting,
      m.seen_at pool_seen_at,
    m.known_at pool_known_at, true is_current
  from invoice_offers o
    join deposits d on d.workspace_id = o.workspace_id and d.network = o.network
      and d.address = o.address
      and coalesce(d.tag, '') = coalesce(o.address_tag, '')
    join transactions t on t.workspace_id = d.workspace_id and t.id = d.transaction_id
    left join network_scans s on s.network = d.network
    left join invoice_payments p on p.workspace_id = t.workspace_id and p.transaction_id = t.id
    left join invoice_mempool m on m.workspace_id = d.workspace_id and m.network = d.network
      and m.txid = d.txid
      and m.invoice_id = o.invoice_id
  where o.workspace_id = any($2) and o.invoice_id = any($1) and o.address is not null
  order by t.created_at, d.block_height, d.txid, d.position`

/**
 * SQL for the payments that were seen in a mempool: those that are in no block yet, and those that
 * are in a block by now, until the invoice is evaluated again.
 */
const POOLED = `select m.invoice_id, null transaction_id, m.txid hash, m.asset, m.network,
    m.amount::text, 'POOLED' state,
    m.seen_at, m.known_at, null block_height, null scanned, m.noted, m.waiting, null pool_seen_at,
      null pool_known_at,
    d.txid is null is_current
  from invoice_mempool m
    left join lateral (
      select d.txid from deposits d
        join invoice_offers o on o.workspace_id = d.workspace_id and o.network = d.network
          and o.address = d.address
      where d.workspace_id = m.workspace_id and d.network = m.network and d.txid = m.txid
        and o.invoice_id = m.invoice_id limit 1) d on true
  where m.workspace_id = any($2) and m.invoice_id = any($1)
    and (d.txid is null or m.noted is not null) order by m.seen_at, m.txid`

const REFUNDS = `select r.invoice_id, r.transaction_id, t.asset, t.amount::text, t.status, t.hash
  from invoice_refunds r join transactions t on t.workspace_id = r.workspace_id
    and t.id = r.transaction_id
  where r.workspace_id = any($2) and r.invoice_id = any($1) order by t.created_at, t.id`

interface PaymentMatchRow {
  transaction_id: string | null
  hash: string | null
  asset: string
  network: string
  amount: string
  state: string
  seen_at: Date
  known_at: Date | null
  block_height: string | null
  scanned: string | null
  noted: PaymentStatus | null
  /** Whether the payment is in the mempool now; null: it was never seen in one. */
  waiting: boolean | null
  pool_seen_at: Date | null
  pool_known_at: Date | null
  /** Whether the payment is not a deposit yet; false: it has become a deposit. */
  is_current: boolean
}

/** States of a deposit in which it is booked for the wallet, or in suspense. */
const CREDITED = new Set(['CREDITED', 'SWEPT', 'SUSPENSE'])

function paymentOf(
  services: Pick<Services, 'registry'>,
  offers: readonly OfferRow[],
  row: PaymentMatchRow,
): PaymentRow {
  const offer = offers.find(({ asset }) => asset === row.asset)
  const depth = services.registry.network(row.network)?.confirmations ?? 1
  const required = Math.max(depth, offer?.confirmations ?? 0)
  const height = row.block_height === null ? null : Number(row.block_height)
  const confirmations =
    height === null ? 0 : Math.max(1, Number(row.scanned ?? height) - height + 1)
  const isDeep = confirmations >= (offer?.confirmations ?? 0)
  const times = [row.seen_at, row.known_at, row.pool_seen_at, row.pool_known_at].flatMap(
    (time) => time?.getTime() ?? [],
  )
  return {
    transaction_id: row.transaction_id,
    hash: row.hash,
    asset: row.asset,
    network: row.network,
    amount: row.amount,
    status: statusOf(row, isDeep),
    confirmations,
    required,
    block_height: height,
    counts: offer !== undefined,
    seen_at: row.seen_at,
    since: new Date(Math.min(...times)),
  }
}

function statusOf({ state, waiting }: PaymentMatchRow, isDeep: boolean): PaymentStatus {
  switch (state) {
    case 'POOLED':
      return waiting ? 'seen' : 'dropped'
    // A transaction that a reorganisation removes from a block usually returns to the mempool.
    case 'REORGED':
      return waiting ? 'seen' : 'reverted'
    case 'FROZEN':
      return 'held'
    default:
      return CREDITED.has(state) && isDeep ? 'confirmed' : 'detected'
  }
}

/** Columns of an {@link InvoiceRow}. */
export const INVOICE_COLUMNS = `id, workspace_id, sub_account_id, status, exception, fiat, fiat_amount::text, memo, order_id, payer,
  webhook_url, success_url, failed_url, tolerance, selected, cancelled_at, marked, marked_reason, marked_at, version, sequence_id,
  expires_at, created_at, updated_at`

/** The data that belongs to an invoice besides its row. */
interface Part {
  invoice_id: string
}

async function partsOf(
  services: Pick<Services, 'registry'>,
  tx: Queryable,
  rows: readonly InvoiceRow[],
): Promise<(Invoice & { matches: PaymentMatchRow[] })[]> {
  const ids = rows.map(({ id }) => id)
  const workspaces = [...new Set(rows.map(({ workspace_id: workspace }) => workspace))]
  const read = async <T>(statement: string): Promise<(id: string) => T[]> => {
    const parts = Map.groupBy(
      await tx.query<Part & T>(statement, [ids, workspaces]),
      ({ invoice_id }) => invoice_id,
    )
    return (id) => parts.get(id) ?? []
  }
  const offers = await read<OfferRow>(OFFERS)
  const isChosen = ids.some((id) => offers(id).some(({ address }) => address !== null))
  const deposits = isChosen ? await read<PaymentMatchRow>(PAYMENTS) : () => []
  const pooled = isChosen ? await read<PaymentMatchRow>(POOLED) : () => []
  const matches = (id: string) => [...deposits(id), ...pooled(id)]
  const refunds = ids.some((id) => matches(id).length > 0)
    ? await read<RefundRow>(REFUNDS)
    : () => []
  return rows.map((row) => ({
    row,
    offers: offers(row.id),
    payments: matches(row.id).map((each) => paymentOf(services, offers(row.id), each)),
    refunds: refunds(row.id),
    matches: matches(row.id),
  }))
}

/**
 * Returns invoices with their related data. The payments are those of the last evaluation, so that
 * they are consistent with the state.
 */
export async function withParts(
  services: Pick<Services, 'registry'>,
  tx: Queryable,
  rows: readonly InvoiceRow[],
): Promise<Invoice[]> {
  return (await partsOf(services, tx, rows)).map(({ matches, ...invoice }) => ({
    ...invoice,
    payments: invoice.payments.flatMap((payment, at) => {
      const status = matches[at]?.noted
      return status ? [{ ...payment, status }] : []
    }),
  }))
}

/** Key of an invoice. */
type Named = Pick<InvoiceRow, 'id' | 'workspace_id'>

const rowOf = async (
  tx: Queryable,
  { id, workspace_id: workspace }: Named,
  lock: string,
): Promise<InvoiceRow | undefined> =>
  ID.test(id)
    ? tx.one<InvoiceRow>(
        `select ${INVOICE_COLUMNS} from invoices where workspace_id = $2 and id = $1 ${lock}`,
        [id, workspace],
      )
    : undefined

/**
 * Returns an invoice by its ID alone, for payers, without a check of ownership. Undefined if it
 * does not exist.
 */
export async function readInvoice(
  services: Pick<Services, 'registry'>,
  tx: Queryable,
  id: string,
): Promise<Invoice | undefined> {
  const row = ID.test(id)
    ? await tx.one<InvoiceRow>(`select ${INVOICE_COLUMNS} from invoices where lower(id) = $1`, [id])
    : undefined
  return row && (await withParts(services, tx, [row]))[0]
}

/**
 * Returns an invoice of the caller.
 * @throws ApiError `NOT_FOUND`, `FORBIDDEN` (another workspace's)
 */
export async function readOwnInvoice(
  services: Pick<Services, 'registry'>,
  tx: Queryable,
  caller: Caller,
  id: string,
): Promise<Invoice> {
  const row = await rowOf(tx, { id, workspace_id: caller.workspaceId }, '')
  return ownInvoice(
    row ? (await withParts(services, tx, [row]))[0] : await readInvoice(services, tx, id),
    caller,
    id,
  )
}

/**
 * Returns an invoice for a change: its row locked, its payments as of now. Undefined if it does not
 * exist, or if `lock` skips it.
 */
export async function lockInvoice(
  services: Pick<Services, 'registry'>,
  tx: Queryable,
  invoice: Named,
  lock: 'for update' | 'for update skip locked' = 'for update',
): Promise<Invoice | undefined> {
  const row = await rowOf(tx, invoice, lock)
  if (!row) return undefined
  const [locked] = await partsOf(services, tx, [row])
  if (!locked) return undefined
  const { matches, ...whole } = locked
  return { ...whole, payments: whole.payments.filter((_, at) => matches[at]?.is_current) }
}

const ID = /^inv_[0-9a-f]{32}$/
const ID_BYTES = 16

/** Returns an ID of 128 random bits, which cannot be guessed. */
export const newInvoiceId = (services: Pick<Services, 'environment'>): string =>
  `inv_${Buffer.from(services.environment.bytes(ID_BYTES)).toString('hex')}`

export const noInvoice = (id: string): ApiError =>
  new ApiError('NOT_FOUND', `inv_id: invoice ${id.slice(0, 100)} does not exist`, {
    field: 'inv_id',
  })

/**
 * Checks that an invoice belongs to its caller.
 * @throws ApiError `NOT_FOUND`, `FORBIDDEN` (another workspace's)
 */
export function ownInvoice(invoice: Invoice | undefined, caller: Caller, id: string): Invoice {
  if (!invoice) throw noInvoice(id)
  if (invoice.row.workspace_id !== caller.workspaceId) {
    throw new ApiError('FORBIDDEN', 'inv_id: the invoice belongs to another workspace', {
      field: 'inv_id',
    })
  }
  if (invoice.row.sub_account_id !== caller.subAccountId) throw noInvoice(id)
  return invoice
}

/** Returns the terms from which an invoice's state is computed. */
export function termsOf({ row, offers }: Pick<Invoice, 'row' | 'offers'>): Terms {
  return {
    offers: new Map(offers.map(({ asset, amount }) => [asset, BigInt(amount)])),
    tolerance: row.tolerance,
    expiresAt: row.expires_at.getTime(),
    cancelledAt: row.cancelled_at?.getTime() ?? null,
    marked: row.marked,
  }
}

export const paymentsOf = ({ payments }: Pick<Invoice, 'payments'>): Payment[] =>
  payments.map(({ asset, amount, status, since }) => ({
    asset,
    amount: BigInt(amount),
    status,
    seenAt: since.getTime(),
  }))
