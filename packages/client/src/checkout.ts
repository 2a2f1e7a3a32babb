import type { RequestSender } from './transport.ts'
import type { Checkout } from './types.ts'

const at = (invoice: string, what: string): string =>
  `/checkout/${encodeURIComponent(invoice)}/${what}`

/**
 * Functions of a payer's checkout page, for checkout pages of your own. They need no API key: the
 * invoice's id is the secret.
 */
export class CheckoutFace {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  /**
   * Reads the state of a checkout.
   * @param invoice id of the invoice
   * @throws CustodyError
   */
  read(invoice: string): Promise<Checkout> {
    return this.#client.request('GET', at(invoice, 'state'), undefined, { public: true })
  }

  /**
   * Chooses the asset of an invoice that offers several.
   * @param invoice id of the invoice
   * @param asset ticker of the asset
   * @returns the updated state of the checkout
   * @throws CustodyError
   */
  choose(invoice: string, asset: string): Promise<Checkout> {
    return this.#client.request(
      'POST',
      at(invoice, 'asset'),
      { asset },
      { public: true, repeatable: true },
    )
  }

  /**
   * Streams the state of a checkout whenever it changes. Reconnects automatically.
   * @param invoice id of the invoice
   * @param options.signal ends the stream
   * @throws CustodyError if the service rejects the request
   */
  async *stream(invoice: string, options: { signal?: AbortSignal } = {}): AsyncGenerator<Checkout> {
    for await (const { data } of this.#client.stream<Checkout>(at(invoice, 'events'), {
      ...options,
      public: true,
    }))
      yield data
  }
}
