import { paginate } from './paginate.ts'
import type { OnceOptions, RequestSender } from './transport.ts'
import type { Checks } from './trust/checks.ts'
import type {
  Invoice,
  InvoiceFilter,
  InvoiceSettings,
  NewInvoice,
  NewInvoiceSettings,
  NewTransaction,
  Page,
  Transaction,
} from './types.ts'
import { decimals, isGiven, query } from './wire.ts'

const at = (id: string, action = ''): string =>
  `/dac/v1/invoices/${encodeURIComponent(id)}${action}`

/**
 * Verifies the addresses and the payment URI of an invoice.
 * @throws VerificationError for the first address that is not the sub-account's own, and for a
 *   payment URI that does not match the invoice
 */
async function check(checks: Checks, invoice: Invoice): Promise<void> {
  const {
    asset,
    address,
    address_tag: tag,
    path,
    payment_uri: uri,
    due_amount: due,
    crypto_amount: whole,
  } = invoice
  for (const each of invoice.assets)
    if (each.address !== null)
      await checks.addresses(each.asset, [{ ...each, address: each.address }])
  if (asset === null || address === null) return
  // The URI requests the amount that is still due, or the whole amount if the invoice is paid.
  const amount = due === '0' ? whole : due
  await checks.addresses(asset, [
    { asset, address, address_tag: tag, path, payment_uri: uri, amount },
  ])
}

/**
 * Invoices for payers. With `trust`, every address of an invoice and its payment URI are verified
 * before a method returns; the method throws {@link VerificationError} if one is not the
 * sub-account's own.
 */
export class Invoices {
  readonly #client: RequestSender
  readonly #checks: Checks | null

  constructor(client: RequestSender, checks: Checks | null) {
    this.#client = client
    this.#checks = checks
  }

  async #checked(answer: Promise<Invoice>): Promise<Invoice> {
    const invoice = await answer
    if (this.#checks) await check(this.#checks, invoice)
    return invoice
  }

  /**
   * Creates an invoice. Set `sequence_id`: then the client repeats a request whose response was
   * lost, and the invoice is created only once.
   * @param invoice either `fiat` and `fiat_amount`, or `asset` and `amount`; decimal texts in whole
   *   units
   * @throws IdempotencyMismatch, CustodyError, VerificationError
   */
  async create(invoice: NewInvoice, options: OnceOptions = {}): Promise<Invoice> {
    const body = decimals(invoice, 'fiat_amount', 'amount', 'tolerance')
    const call = { repeatable: isGiven(invoice.sequence_id), ...options }
    return this.#checked(this.#client.request('POST', '/dac/v1/invoices', body, call))
  }

  /**
   * Reads an invoice with its payments.
   * @param id of the invoice
   * @throws CustodyError, VerificationError
   */
  read(id: string): Promise<Invoice> {
    return this.#checked(this.#client.request('GET', at(id)))
  }

  /** Lists invoices, newest first. */
  async list(filter: InvoiceFilter = {}): Promise<Page<Invoice>> {
    const page = await this.#client.request<Page<Invoice>>(
      'GET',
      `/dac/v1/invoices${query(filter)}`,
    )
    if (this.#checks) for (const invoice of page.data) await check(this.#checks, invoice)
    return page
  }

  /** Iterates over all matching invoices, newest first, and reads pages as needed. */
  each(filter: Omit<InvoiceFilter, 'page'> = {}): AsyncGenerator<Invoice> {
    return paginate((page) => this.list({ ...filter, ...page }), filter.limit)
  }

  /**
   * Cancels a pending invoice. A later payment is still credited, and reported as late.
   * @param id of the invoice
   */
  cancel(id: string): Promise<Invoice> {
    return this.#checked(this.#client.request('POST', at(id, '/cancel'), {}, { repeatable: true }))
  }

  /**
   * Overrides the status that follows from the payments. The last call is effective.
   * @param id of the invoice
   * @param reason text that is stored with the change
   */
  mark(id: string, status: 'settled' | 'invalid', reason: string): Promise<Invoice> {
    return this.#checked(
      this.#client.request('POST', at(id, '/mark'), { status, reason }, { repeatable: true }),
    )
  }

  /**
   * Creates an outgoing transfer that is linked to the invoice as its refund. Set `sequence_id`, as
   * for every transfer.
   * @param id of the invoice
   * @param transaction the transfer; `amount` in whole units of the asset
   * @throws IdempotencyMismatch, CustodyError
   */
  async refund(
    id: string,
    transaction: NewTransaction,
    options: OnceOptions = {},
  ): Promise<Transaction> {
    const body = {
      source_type: 'INTERNAL',
      destination_type: 'EXTERNAL',
      ...decimals(transaction, 'amount', 'fee_rate'),
    }
    return this.#client.request('POST', at(id, '/refund'), body, {
      repeatable: isGiven(transaction.sequence_id),
      ...options,
    })
  }

  /** Returns the default settings of the sub-account's invoices. */
  settings(): Promise<InvoiceSettings> {
    return this.#client.request('GET', '/dac/v1/invoice-settings')
  }

  /** Replaces all invoice settings. Omitted ones are reset to the installation's defaults. */
  async saveSettings(settings: NewInvoiceSettings): Promise<InvoiceSettings> {
    const { confirmations, ...rest } = decimals(settings, 'tolerance') as NewInvoiceSettings
    const depths = confirmations?.map((each) => decimals(each, 'from_usd'))
    const body = { ...(depths ? { confirmations: depths } : {}), ...rest }
    return this.#client.request('PUT', '/dac/v1/invoice-settings', body, { repeatable: true })
  }
}
