import type { CustodyClient } from './client.ts'
import type { Checks } from './trust/checks.ts'
import type {
  Decimal, Invoice, InvoiceFilter, InvoiceSettings, NewInvoice, NewTransaction, Page, Transaction,
} from './types.ts'
import { number, query } from './wire.ts'

const at = (id: string, action = ''): string => `/dac/v1/invoices/${encodeURIComponent(id)}${action}`
const decimal = (name: string, value: Decimal | undefined) => (value === undefined ? {} : { [name]: number(name, value) })

/** @throws VerificationError for the first address that is not the sub-account's own, and for a payment URI that says another thing */
async function check(checks: Checks, invoice: Invoice): Promise<void> {
  const { asset, address, address_tag: tag, path, payment_uri: uri, due_amount: due, crypto_amount: whole } = invoice
  for (const each of invoice.assets) if (each.address !== null) await checks.addresses(each.asset, [{ ...each, address: each.address }])
  if (asset === null || address === null) return
  // What is missing is asked for, or, of one that is paid, the whole.
  const amount = due === '0' ? whole : due
  await checks.addresses(asset, [{ asset, address, address_tag: tag, path, payment_uri: uri, amount }])
}

/**
 * Asks payers for money. With `trust`, every address that an invoice shows is checked before it is answered, and its payment URI:
 * {@link VerificationError} for one that is not the sub-account's own.
 */
export class Invoices {
  readonly #client: CustodyClient
  readonly #checks: Checks | null

  constructor(client: CustodyClient, checks: Checks | null) {
    this.#client = client
    this.#checks = checks
  }

  async #checked(answer: Promise<Invoice>): Promise<Invoice> {
    const invoice = await answer
    if (this.#checks) await check(this.#checks, invoice)
    return invoice
  }

  /** Give a `sequence_id`: then an answer that was lost is asked for again, and the invoice is made once. */
  async create(invoice: NewInvoice): Promise<Invoice> {
    const { fiat_amount: fiatAmount, amount, tolerance, ...rest } = invoice
    const body = { ...rest, ...decimal('fiat_amount', fiatAmount), ...decimal('amount', amount), ...decimal('tolerance', tolerance) }
    return this.#checked(this.#client.request('POST', '/dac/v1/invoices', body, { repeatable: invoice.sequence_id !== undefined }))
  }

  read(id: string): Promise<Invoice> {
    return this.#checked(this.#client.request('GET', at(id)))
  }

  /** Newest first. */
  async list(filter: InvoiceFilter = {}): Promise<Page<Invoice>> {
    const page = await this.#client.request<Page<Invoice>>('GET', `/dac/v1/invoices${query(filter)}`)
    if (this.#checks) for (const invoice of page.data) await check(this.#checks, invoice)
    return page
  }

  cancel(id: string): Promise<Invoice> {
    return this.#checked(this.#client.request('POST', at(id, '/cancel'), {}, { repeatable: true }))
  }

  /** Your word goes before what was paid; the last one counts. */
  mark(id: string, status: 'settled' | 'invalid', reason: string): Promise<Invoice> {
    return this.#checked(this.#client.request('POST', at(id, '/mark'), { status, reason }, { repeatable: true }))
  }

  /** Your own transfer, linked with the invoice. Give a `sequence_id`, as of every transfer. */
  async refund(id: string, transaction: NewTransaction): Promise<Transaction> {
    const { amount, fee_rate: feeRate, ...rest } = transaction
    const body = {
      source_type: 'INTERNAL', destination_type: 'EXTERNAL', ...rest, ...decimal('amount', amount), ...decimal('fee_rate', feeRate),
    }
    return this.#client.request('POST', at(id, '/refund'), body, { repeatable: transaction.sequence_id !== undefined })
  }

  settings(): Promise<InvoiceSettings> {
    return this.#client.request('GET', '/dac/v1/invoice-settings')
  }

  /** As a whole: what is left out is the installation's own. */
  async saveSettings(settings: Partial<InvoiceSettings>): Promise<InvoiceSettings> {
    const { tolerance, confirmations, ...rest } = settings
    const depths = confirmations?.map((each) => ({ ...each, from_usd: number('from_usd', each.from_usd) }))
    const body = { ...rest, ...(depths ? { confirmations: depths } : {}), ...decimal('tolerance', tolerance) }
    return this.#client.request('PUT', '/dac/v1/invoice-settings', body, { repeatable: true })
  }
}
