import type { Caller } from '../../core/http/endpoint.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Checkout } from './present.ts'
import { lockInvoice, ownInvoice, readInvoice, type Invoice } from './invoice.ts'
import { evaluateInvoice, type ManualDecision } from './evaluate-invoice.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  checkout: Checkout
}

/**
 * Changes an invoice by a decision of its merchant.
 * @param decide receives the current invoice including all payments; null: no change
 * @throws ApiError `NOT_FOUND`, `FORBIDDEN`, and the errors of `decide`
 */
export async function byHand(
  services: Services,
  caller: Caller,
  id: string,
  decide: (invoice: Invoice) => ManualDecision | null,
): Promise<Invoice> {
  return services.database.transaction(async (tx) => {
    // A payment that arrived a moment ago is counted before the decision.
    const own =
      (await lockInvoice(services, tx, { id, workspace_id: caller.workspaceId })) ??
      (await readInvoice(services, tx, id))
    const invoice = await evaluateInvoice(services, tx, ownInvoice(own, caller, id))
    const change = decide(invoice)
    return change === null ? invoice : evaluateInvoice(services, tx, invoice, change)
  })
}
