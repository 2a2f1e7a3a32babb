import {
  Transport,
  type RequestOptions,
  type RequestSender,
  type StreamEvent,
  type StreamOptions,
  type TransportOptions,
} from '../transport.ts'
import { Checks } from '../trust/checks.ts'
import { readTrust, type Trust } from '../trust/trust.ts'

/** Options of a {@link CustodyClient}. */
export interface CustodyClientOptions extends TransportOptions {
  /**
   * Trust object from the operator. If it is set, the client derives addresses locally from the
   * keys that the pinned signer nodes certified, and rejects all others.
   */
  trust?: Trust
}

/** Signs and sends the requests of a client. */
export abstract class ClientBase implements RequestSender {
  readonly baseUrl: string
  readonly apiKey: string
  protected readonly transport: Transport
  /** Checks of responses against the trust object; null without one. */
  protected readonly checks: Checks | null

  constructor(options: CustodyClientOptions) {
    this.transport = new Transport(options, (id) => this.checks?.signed(id))
    this.baseUrl = this.transport.baseUrl
    this.apiKey = this.transport.apiKey
    this.checks =
      options.trust === undefined
        ? null
        : new Checks(readTrust(options.trust), () => this.request('GET', '/dac/v1/keys'))
  }

  /**
   * Sends any request of the API. `body` may contain {@link JsonNumber} values, which are sent with
   * exactly their digits. Amounts and rates in the response are decimal strings.
   *
   * @param method HTTP method
   * @param path with its query
   * @throws CustodyError; the reason of `signal` if it aborts
   */
  request<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    options: RequestOptions = {},
  ): Promise<T> {
    return this.transport.request(method, path, body, options)
  }

  /**
   * Reads server-sent events. Reconnects automatically and continues after the last received event.
   * Ends when the signal aborts.
   * @param path with its query
   * @throws CustodyError if the service rejects the request
   */
  stream<T = unknown>(path: string, options: StreamOptions = {}): AsyncGenerator<StreamEvent<T>> {
    return this.transport.stream(path, options)
  }
}
