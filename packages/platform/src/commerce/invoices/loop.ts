import { reasonOf } from '@custody/chains/reason'
import type { Invoices } from '../../core/engine/interfaces/listeners.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import type { Checkout } from './present.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import { lockInvoice, type InvoiceRow } from './invoice.ts'
import { evaluateInvoice } from './evaluate-invoice.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  registry: Registry
  log: Logger
  checkout: Checkout
}

/** SQL condition for an invoice `i` that is due at the time $1. */
const IS_TIMELY = '(i.due_at <= $1)'
const DEEP =
  'network_scans s join invoices i on i.due_network = s.network and i.due_height <= s.height'

type Due = Pick<InvoiceRow, 'id' | 'workspace_id'>

const INVOICES_PER_RUN = 400
const AT_ONCE = 8
/**
 * Delay in milliseconds after which a failed evaluation is repeated. It does not
 * delay other invoices.
 */
const ERROR_WAIT_MS = 10_000

/**
 * Schedules the evaluation of invoices whose deposits have changed. Uses a single indexed
 * statement, because most deposits belong to no invoice.
 */
export const invoices: Invoices = {
  async moved(tx, { workspace_id: workspace, network, destination_id, address_tag }) {
    await tx.query(
      `update invoices i set due_at = $4 from invoice_offers o
       where o.workspace_id = $5 and o.network = $1 and o.address = $2
         and coalesce(o.address_tag, '') = coalesce($3, '')
         and i.workspace_id = $5 and i.id = o.invoice_id`,
      [network, destination_id, address_tag, tx.now(), workspace],
    )
  },
}

/**
 * Evaluates invoices whose payments have changed, that have expired, or whose payments have enough
 * confirmations. Processes one batch, longest wait first. An invoice that another process has locked
 * is left to it.
 * @returns the number of processed invoices, without those that were locked. They stay due, so
 *   counting them would repeat the batch without a pause.
 */
export async function lookAtDue(services: Services): Promise<number> {
  const due = await services.database.query<Due>(
    `(select i.workspace_id, i.id from invoices i where ${IS_TIMELY} order by i.due_at limit $2)
     union (select i.workspace_id, i.id from ${DEEP} limit $2)`,
    [services.database.now(), INVOICES_PER_RUN],
  )
  let next = 0
  let processed = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let one = due[next++]; one !== undefined; one = due[next++])
        if (await lookAt(services, one)) processed++
    }),
  )
  return processed
}

/**
 * Creates the loop that evaluates invoices as soon as this process has emitted an event of a
 * deposit, and periodically for deposits of other processes.
 */
export function invoiceLoop(services: Services): Loop {
  return {
    name: 'invoices',
    everyMs: services.settings.pollMs,
    notifier: services.checkout.moved,
    due: `exists (select 1 from invoices i where ${IS_TIMELY}) or exists (select 1 from ${DEEP})`,
    run: async () => (await lookAtDue(services)) > 0,
  }
}

/** Evaluates one invoice. @returns false if it is locked */
async function lookAt(services: Services, { id, workspace_id: workspace }: Due): Promise<boolean> {
  try {
    const isFree = await services.database.transaction(async (tx) => {
      const invoice = await lockInvoice(
        services,
        tx,
        { id, workspace_id: workspace },
        'for update skip locked',
      )
      if (invoice) await evaluateInvoice(services, tx, invoice)
      return invoice !== undefined
    })
    services.environment.checkpoint('invoice.looked')
    return isFree
  } catch (error) {
    services.log.warn(
      { invoice: id, err: reasonOf(error) },
      'an invoice could not be processed; it is retried',
    )
    await services.database.query(
      `update invoices set due_at = $2, due_network = null, due_height = null
        where workspace_id = $3 and id = $1`,
      [id, new Date(services.environment.now() + ERROR_WAIT_MS), workspace],
    )
    return true
  }
}
