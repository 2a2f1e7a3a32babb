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
 * @throws VerificationError for the first address that is not the sub-account's own, and for a
 *   payment URI that says another thing
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
  // What is missing is asked for, or, of one that is paid, the whole.
  const amount = due === '0' ? whole : due
  await checks.addresses(asset, [
    { asset, address, address_tag: tag, path, payment_uri: uri, amount },
  ])
}

/**
 * Asks payers for money. With `trust`, every address that an invoice shows is checked before it is
 * answered, and its payment URI: {@link VerificationError} for one that is not the sub-account's
 * own.
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
   * Give a `sequence_id`: then an answer that was lost is asked for again, and the invoice is made
   * once.
   */
  async create(invoice: NewInvoice, options: OnceOptions = {}): Promise<Invoice> {
    const body = decimals(invoice, 'fiat_amount', 'amount', 'tolerance')
    const call = { repeatable: isGiven(invoice.sequence_id), ...options }
    return this.#checked(this.#client.request('POST', '/dac/v1/invoices', body, call))
  }

  read(id: string): Promise<Invoice> {
    return this.#checked(this.#client.request('GET', at(id)))
  }

  /** Newest first. */
  async list(filter: InvoiceFilter = {}): Promise<Page<Invoice>> {
    const page = await this.#client.request<Page<Invoice>>(
      'GET',
      `/dac/v1/invoices${query(filter)}`,
    )
    if (this.#checks) for (const invoice of page.data) await check(this.#checks, invoice)
    return page
  }

  /** Each of them, newest first, over as many pages as there are. */
  each(filter: Omit<InvoiceFilter, 'page'> = {}): AsyncGenerator<Invoice> {
    return paginate((page) => this.list({ ...filter, ...page }), filter.limit)
  }

  cancel(id: string): Promise<Invoice> {
    return this.#checked(this.#client.request('POST', at(id, '/cancel'), {}, { repeatable: true }))
  }

  /** Your word goes before what was paid; the last one counts. */
  mark(id: string, status: 'settled' | 'invalid', reason: string): Promise<Invoice> {
    return this.#checked(
      this.#client.request('POST', at(id, '/mark'), { status, reason }, { repeatable: true }),
    )
  }

  /** Your own transfer, linked with the invoice. Give a `sequence_id`, as of every transfer. */
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

  settings(): Promise<InvoiceSettings> {
    return this.#client.request('GET', '/dac/v1/invoice-settings')
  }

  /** As a whole: what is left out is the installation's own. */
  async saveSettings(settings: NewInvoiceSettings): Promise<InvoiceSettings> {
    const { confirmations, ...rest } = decimals(settings, 'tolerance') as NewInvoiceSettings
    const depths = confirmations?.map((each) => decimals(each, 'from_usd'))
    const body = { ...(depths ? { confirmations: depths } : {}), ...rest }
    return this.#client.request('PUT', '/dac/v1/invoice-settings', body, { repeatable: true })
  }
}
