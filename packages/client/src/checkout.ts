import type { RequestSender } from './transport.ts'
import type { Checkout } from './types.ts'

const at = (invoice: string, what: string): string =>
  `/checkout/${encodeURIComponent(invoice)}/${what}`

/**
 * What a payer's page asks, for pages of your own. Needs no key: the id of the invoice is the
 * secret.
 */
export class CheckoutFace {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  read(invoice: string): Promise<Checkout> {
    return this.#client.request('GET', at(invoice, 'state'), undefined, { public: true })
  }

  /** Of an invoice that offers several. */
  choose(invoice: string, asset: string): Promise<Checkout> {
    return this.#client.request(
      'POST',
      at(invoice, 'asset'),
      { asset },
      { public: true, repeatable: true },
    )
  }

  /** The state, as often as it changes. */
  async *stream(invoice: string, options: { signal?: AbortSignal } = {}): AsyncGenerator<Checkout> {
    for await (const { data } of this.#client.stream<Checkout>(at(invoice, 'events'), {
      ...options,
      public: true,
    }))
      yield data
  }
}
