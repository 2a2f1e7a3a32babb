import type * as api from './api.d.ts'
import type { RequestSender } from './transport.ts'
import { query } from './wire.ts'

const OPEN = { public: true } as const

/** Status and metadata of the service. Needs no API key. */
export class Service {
  readonly #client: RequestSender

  constructor(client: RequestSender) {
    this.#client = client
  }

  /** Returns links to the API and to the documents of this version. */
  index(): Promise<api.Index> {
    return this.#client.request('GET', '/', undefined, OPEN)
  }

  /** Returns the OpenAPI 3.1 document of the service. */
  openApi(): Promise<api.OpenApi> {
    return this.#client.request('GET', '/openapi.json', undefined, OPEN)
  }

  /** Returns whether the process runs. */
  live(): Promise<api.Liveness> {
    return this.#client.request('GET', '/livez', undefined, OPEN)
  }

  /**
   * Returns whether the service accepts transfers.
   * @param options.deep also checks whether transfers would be signed
   * @throws CustodyError 503 if transfers are not accepted
   */
  ready(options: { deep?: boolean } = {}): Promise<api.Readiness> {
    const path = `/readyz${query({ deep: options.deep ? '1' : undefined })}`
    return this.#client.request('GET', path, undefined, { ...OPEN, repeatable: false })
  }

  /**
   * Returns metrics as Prometheus text. By default the service serves them only to loopback.
   */
  metrics(): Promise<string> {
    return this.#client.request('GET', '/metrics', undefined, { ...OPEN, as: 'text' })
  }
}
