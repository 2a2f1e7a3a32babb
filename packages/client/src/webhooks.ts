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

/** URLs to which events are posted. The receiver verifies deliveries with {@link verifyWebhook}. */
export class Webhooks {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  /**
   * Creates a webhook. Store the secret: it is never returned again.
   * @throws CustodyError
   */
  create(webhook: NewWebhook): Promise<WebhookWithSecret> {
    return this.#client.request('POST', '/dac/v1/webhooks', webhook)
  }

  /** Lists the webhooks of the workspace, with the state of their deliveries. */
  async list(): Promise<Webhook[]> {
    return (await this.#client.request<{ data: Webhook[] }>('GET', '/dac/v1/webhooks')).data
  }

  /**
   * Reads a webhook.
   * @param id of the webhook
   */
  read(id: string): Promise<Webhook> {
    return this.#client.request('GET', at(id))
  }

  /**
   * Changes the URL or the events of a webhook, or disables it.
   * @param id of the webhook
   */
  change(id: string, change: WebhookChange): Promise<Webhook> {
    return this.#client.request('PATCH', at(id), change, { repeatable: true })
  }

  /**
   * Deletes a webhook and its deliveries. No further events are sent to it.
   * @param id of the webhook
   */
  delete(id: string): Promise<{ id: string; deleted: true }> {
    return this.#client.request('DELETE', at(id), {})
  }

  /**
   * Creates a new secret. The old one also signs until the overlap ends.
   * @param id of the webhook
   * @param options.overlap_s duration of the overlap in seconds
   */
  rotate(id: string, options: { overlap_s?: number } = {}): Promise<WebhookWithSecret> {
    return this.#client.request('POST', at(id, '/rotate'), options)
  }

  /**
   * Sends a `webhook.test` event and returns the result of the delivery.
   * @param id of the webhook
   */
  test(id: string): Promise<Delivery> {
    return this.#client.request('POST', at(id, '/test'))
  }

  /**
   * Lists the deliveries of a webhook, newest first.
   * @param id of the webhook
   */
  deliveries(id: string, filter: DeliveryFilter = {}): Promise<Page<Delivery>> {
    return this.#client.request('GET', `${at(id, '/deliveries')}${query(filter)}`)
  }

  /**
   * Iterates over all matching deliveries of a webhook, newest first, and reads pages as needed.
   * @param id of the webhook
   */
  eachDelivery(id: string, filter: Omit<DeliveryFilter, 'page'> = {}): AsyncGenerator<Delivery> {
    return paginate((page) => this.deliveries(id, { ...filter, ...page }), filter.limit)
  }

  /**
   * Sends the same bytes with the same `webhook-id` again.
   * @param delivery id of the delivery
   * @param webhook id of the webhook to which the delivery must belong; not checked if absent
   */
  resend(delivery: string, webhook?: string): Promise<Delivery> {
    const end = `deliveries/${encodeURIComponent(delivery)}/resend`
    return this.#client.request(
      'POST',
      webhook === undefined ? `/dac/v1/webhooks/${end}` : at(webhook, `/${end}`),
    )
  }

  /** Returns the public key that verifies `x-signature`, as PEM. Needs no API key. */
  publicKeyPem(): Promise<string> {
    return this.#client.request('GET', '/.well-known/custody-webhook-key.pem', undefined, {
      public: true,
      as: 'text',
    })
  }

  /** Returns the public keys that verify `x-signature`, as a JWK set. Needs no API key. */
  async publicKeys(): Promise<Record<string, string>[]> {
    const path = '/.well-known/custody-webhook-keys.json'
    return (
      await this.#client.request<{ keys: Record<string, string>[] }>('GET', path, undefined, {
        public: true,
      })
    ).keys
  }
}
