import type * as api from './api.d.ts'
import type { RequestSender } from './transport.ts'
import { query } from './wire.ts'

const OPEN = { public: true } as const

/** How the service is. Needs no key. */
export class Service {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  index(): Promise<api.ReadIndexResponse> {
    return this.#client.request('GET', '/', undefined, OPEN)
  }

  openApi(): Promise<api.ReadOpenApiResponse> {
    return this.#client.request('GET', '/openapi.json', undefined, OPEN)
  }

  live(): Promise<api.ReadLivenessResponse> {
    return this.#client.request('GET', '/livez', undefined, OPEN)
  }

  /**
   * @param options.deep also whether transfers would be signed @throws CustodyError 503 where
   *   they are not accepted
   */
  ready(options: { deep?: boolean } = {}): Promise<api.ReadReadinessResponse> {
    const path = `/readyz${query({ deep: options.deep ? '1' : undefined })}`
    return this.#client.request('GET', path, undefined, { ...OPEN, repeatable: false })
  }

  /** Prometheus text; from loopback only. */
  metrics(): Promise<string> {
    return this.#client.request('GET', '/metrics', undefined, { ...OPEN, as: 'text' })
  }
}
