import type { Caller } from '../http/endpoint.ts'
import type { Services } from '../engine/services.ts'
import { lockInvoice, ownInvoice, readInvoice, type Invoice } from './invoice.ts'
import { evaluateInvoice, type ManualDecision } from './evaluate-invoice.ts'

/**
 * Changes an invoice by its merchant's word.
 * @param decide sees the invoice as it is at this moment, its payments counted; null: nothing is
 *   to be changed
 * @throws ApiError `NOT_FOUND`, `FORBIDDEN`, and what `decide` throws
 */
export async function byHand(
  services: Services,
  caller: Caller,
  id: string,
  decide: (invoice: Invoice) => ManualDecision | null,
): Promise<Invoice> {
  return services.database.transaction(async (tx) => {
    // What came in a moment ago counts before it is decided.
    const own =
      (await lockInvoice(services, tx, { id, workspace_id: caller.workspaceId })) ??
      (await readInvoice(services, tx, id))
    const invoice = await evaluateInvoice(services, tx, ownInvoice(own, caller, id))
    const change = decide(invoice)
    return change === null ? invoice : evaluateInvoice(services, tx, invoice, change)
  })
}
