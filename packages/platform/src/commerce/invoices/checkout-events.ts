import { endpoint, type ServerEvent } from '../../core/http/endpoint.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Feed } from '../../core/ledger/feed.ts'
import { checkoutShape, checkoutState, invoiceParams } from './checkout-state.ts'
import { noInvoice, readInvoice } from './invoice.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  feed: Feed
}

/**
 * Interval in milliseconds at which the number of confirmations is read while a payment waits for
 * blocks, because no event is emitted for each block.
 */
const DEEPER_EVERY_MS = 2000

/** Streams the state of an invoice: immediately, and again whenever it changes. */
export const checkoutEvents = endpoint({
  id: 'streamCheckout',
  tag: 'Checkout',
  description:
    'Sends the invoice’s state as server-sent events whenever it changes. Requires no API key.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/checkout/{inv_id}/events',
  summary: 'Stream an invoice’s state to its payer',
  access: 'public',
  params: invoiceParams,
  response: checkoutShape,
  streams: true,
  async handler({ params: { inv_id } }, services: Services) {
    const invoice = await readInvoice(services, services.database, inv_id)
    if (!invoice) throw noInvoice(inv_id)
    return {
      stream: (signal) => statesOf(services, inv_id, invoice.row.workspace_id, signal),
      resource: `invoice ${invoice.row.id}`,
    }
  },
})

async function* statesOf(
  services: Services,
  id: string,
  workspace: string,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  const listener = services.feed.listen({ workspace, object: id })
  let shown = ''
  try {
    // A pending wait is reused, so that a check of the state in between does not lose a
    // notification.
    let pending = listener.next(signal)
    while (!signal.aborted) {
      const invoice = await readInvoice(services, services.database, id)
      if (!invoice) return
      const state = await checkoutState(services, invoice)
      const text = JSON.stringify({ ...state, now: '' })
      if (text !== shown) {
        shown = text
        yield { event: 'state', data: JSON.stringify(state) }
      }
      const waits = state.payments.some(({ status }) => status === 'detected')
      const ended = new AbortController()
      const deeper = waits
        ? services.environment
            .sleep(DEEPER_EVERY_MS, AbortSignal.any([signal, ended.signal]))
            .then(() => null)
        : null
      const first = await (deeper ? Promise.race([pending, deeper]) : pending)
      ended.abort()
      if (first !== null) pending = listener.next(signal)
    }
  } finally {
    listener.close()
  }
}
