import { stringifyJson } from '@custody/request-auth'
import type { EventType } from '../../core/database/event-types.ts'
import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import { emit } from '../../core/ledger/post.ts'
import { evaluate, type InvoiceStatus } from './evaluate.ts'
import {
  INVOICE_COLUMNS,
  paymentsOf,
  termsOf,
  type Invoice,
  type InvoiceRow,
  type PaymentRow,
} from './invoice.ts'
import { presentInvoice, type Checkout } from './present.ts'

interface Services {
  environment: Environment
  registry: Registry
  checkout: Checkout
}

type InvoiceEvent = Extract<EventType, `invoice.${string}`>

/**
 * Events for an invoice's new state. For a return to Pending, and all other changes, the event is
 * `invoice.updated`.
 */
const EVENTS: Partial<Record<InvoiceStatus, InvoiceEvent>> = {
  Processing: 'invoice.processing',
  Paid: 'invoice.paid',
  Expired: 'invoice.expired',
  Invalid: 'invoice.invalid',
}

/** Changes of an invoice by its merchant. */
export type ManualDecision = Partial<
  Pick<InvoiceRow, 'cancelled_at' | 'marked' | 'marked_reason' | 'marked_at' | 'selected'>
>

/** Returns the event for a changed invoice; it has left `Paid` if a reorganisation removed a payment. */
function eventOf(
  before: InvoiceStatus,
  after: InvoiceStatus,
  byHand: ManualDecision,
): InvoiceEvent {
  if (before === 'Paid' && after !== 'Paid' && Object.keys(byHand).length === 0)
    return 'invoice.reverted'
  return (after === before ? undefined : EVENTS[after]) ?? 'invoice.updated'
}

/** Emits an event about an invoice. The payload is the API's representation of the invoice. */
export async function publishInvoiceEvent(
  services: Pick<Services, 'registry' | 'checkout'>,
  tx: Queryable,
  invoice: Invoice,
  type: InvoiceEvent,
): Promise<void> {
  await emit(
    tx,
    invoice.row.workspace_id,
    invoice.row.sub_account_id,
    type,
    stringifyJson(presentInvoice(services, invoice)),
  )
}

/**
 * Stores the state of each payment.
 * @returns whether a payment is new or its state has changed
 */
async function notePayments(tx: Queryable, { row, payments }: Invoice): Promise<boolean> {
  const deposits = payments.filter(({ transaction_id }) => transaction_id !== null)
  const arePooled = await notePooled(
    tx,
    row,
    payments.filter(({ transaction_id }) => transaction_id === null),
  )
  if (deposits.length === 0) return arePooled
  const changed = await tx.query(
    `insert into invoice_payments as p (workspace_id, transaction_id, invoice_id, asset, amount,
      status, counts, seen_at)
     select $3, r.transaction_id, $1, r.asset, r.amount, r.status, r.counts, r.seen_at
     from jsonb_to_recordset($2) as r(transaction_id uuid, asset text, amount numeric, status text,
       counts boolean, seen_at timestamptz)
     on conflict (workspace_id, transaction_id) do update set status = excluded.status
       where p.status <> excluded.status returning 1`,
    [row.id, JSON.stringify(deposits), row.workspace_id],
  )
  return arePooled || changed.length > 0
}

/**
 * Stores the state of each payment in a mempool; a payment that has become a deposit is no longer
 * updated.
 */
async function notePooled(
  tx: Queryable,
  invoice: InvoiceRow,
  pooled: readonly PaymentRow[],
): Promise<boolean> {
  const changed = await tx.query(
    `update invoice_mempool m set noted = n.status
     from invoice_mempool e
       left join jsonb_to_recordset($2) as n(network text, hash text,
         status text) on n.network = e.network and n.hash = e.txid
     where e.workspace_id = $3 and e.invoice_id = $1 and m.workspace_id = $3
       and m.network = e.network and m.txid = e.txid
       and m.invoice_id = e.invoice_id
       and m.noted is distinct from n.status returning 1`,
    [invoice.id, JSON.stringify(pooled), invoice.workspace_id],
  )
  return changed.length > 0
}

/**
 * Returns the next block height at which a credited payment has enough confirmations for the
 * invoice, if a payment is waiting for that.
 */
function nextDepth({ offers, payments }: Invoice): { network: string; height: number } | null {
  const waiting = payments.flatMap(({ asset, network, status, confirmations, block_height }) => {
    const wanted = offers.find((offer) => offer.asset === asset)?.confirmations ?? 0
    return status === 'detected' && block_height !== null && confirmations < wanted
      ? [{ network, height: block_height + wanted - 1 }]
      : []
  })
  return waiting.toSorted((a, b) => a.height - b.height)[0] ?? null
}

/**
 * Evaluates an invoice whose row is locked, stores the result, and emits the event in the same
 * transaction. If nothing has changed, only the time of the next evaluation is stored.
 * @param byHand changes that the merchant makes at the same time
 */
export async function evaluateInvoice(
  services: Services,
  tx: Queryable,
  before: Invoice,
  byHand: ManualDecision = {},
): Promise<Invoice> {
  const now = services.environment.now()
  const invoice = { ...before, row: { ...before.row, ...byHand } }
  const end = evaluate(termsOf(invoice), paymentsOf(invoice), now)
  const moved = await notePayments(tx, invoice)
  const isChanged =
    end.status !== before.row.status ||
    end.exception !== before.row.exception ||
    moved ||
    Object.keys(byHand).length > 0
  const depth = nextDepth(invoice)
  const { cancelled_at, marked, marked_reason, marked_at, selected } = invoice.row
  const row = (await tx.one<InvoiceRow>(
    `update invoices set status = $2, exception = $3, due_at = $4, due_network = $5,
       due_height = $6, version = version + $7,
       cancelled_at = $8, marked = $9, marked_reason = $10, marked_at = $11, selected = $12,
       updated_at = case when $7::integer = 0 then updated_at else $13 end
     where workspace_id = $14 and id = $1 returning ${INVOICE_COLUMNS}`,
    [
      invoice.row.id,
      end.status,
      end.exception,
      end.status === 'Pending' ? invoice.row.expires_at : null,
      depth?.network ?? null,
      depth?.height ?? null,
      isChanged ? 1 : 0,
      cancelled_at,
      marked,
      marked_reason,
      marked_at,
      selected,
      new Date(now),
      invoice.row.workspace_id,
    ],
  )) as InvoiceRow
  const after = { ...invoice, row }
  if (isChanged)
    await publishInvoiceEvent(services, tx, after, eventOf(before.row.status, end.status, byHand))
  return after
}
