import { paginate } from './paginate.ts'
import type { RequestSender } from './transport.ts'
import type {
  Delivery,
  DeliveryFilter,
  NewWebhook,
  Page,
  Webhook,
  WebhookChange,
  WebhookWithSecret,
} from './types.ts'
import { query } from './wire.ts'

const at = (id: string, action = ''): string =>
  `/dac/v1/webhooks/${encodeURIComponent(id)}${action}`

/** Where events are posted to. What receives them verifies by {@link verifyWebhook}. */
export class Webhooks {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  /** Keep the secret: it is shown here and never again. */
  create(webhook: NewWebhook): Promise<WebhookWithSecret> {
    return this.#client.request('POST', '/dac/v1/webhooks', webhook)
  }

  async list(): Promise<Webhook[]> {
    return (await this.#client.request<{ data: Webhook[] }>('GET', '/dac/v1/webhooks')).data
  }

  read(id: string): Promise<Webhook> {
    return this.#client.request('GET', at(id))
  }

  change(id: string, change: WebhookChange): Promise<Webhook> {
    return this.#client.request('PATCH', at(id), change, { repeatable: true })
  }

  delete(id: string): Promise<{ id: string; deleted: true }> {
    return this.#client.request('DELETE', at(id))
  }

  /** A new secret; the old one signs beside it for a while. */
  rotate(id: string, options: { overlap_s?: number } = {}): Promise<WebhookWithSecret> {
    return this.#client.request('POST', at(id, '/rotate'), options)
  }

  /** Sends `webhook.test`, and answers what became of it. */
  test(id: string): Promise<Delivery> {
    return this.#client.request('POST', at(id, '/test'))
  }

  /** Newest first. */
  deliveries(id: string, filter: DeliveryFilter = {}): Promise<Page<Delivery>> {
    return this.#client.request('GET', `${at(id, '/deliveries')}${query(filter)}`)
  }

  eachDelivery(id: string, filter: Omit<DeliveryFilter, 'page'> = {}): AsyncGenerator<Delivery> {
    return paginate((page) => this.deliveries(id, { ...filter, ...page }), filter.limit)
  }

  /**
   * The same bytes under the same `webhook-id` once more. @param webhook whose it has to be, where
   * it is given
   */
  resend(delivery: string, webhook?: string): Promise<Delivery> {
    const end = `deliveries/${encodeURIComponent(delivery)}/resend`
    return this.#client.request(
      'POST',
      webhook === undefined ? `/dac/v1/webhooks/${end}` : at(webhook, `/${end}`),
    )
  }

  /** What `x-signature` is verified with, as PEM. Needs no key. */
  publicKeyPem(): Promise<string> {
    return this.#client.request('GET', '/.well-known/custody-webhook-key.pem', undefined, {
      public: true,
      as: 'text',
    })
  }

  /** The same as a JWK set. */
  async publicKeys(): Promise<Record<string, string>[]> {
    const path = '/.well-known/custody-webhook-keys.json'
    return (
      await this.#client.request<{ keys: Record<string, string>[] }>('GET', path, undefined, {
        public: true,
      })
    ).keys
  }
}
