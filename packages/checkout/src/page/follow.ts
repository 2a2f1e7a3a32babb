import type { CheckoutState } from '../state.ts'

/** Callbacks of an invoice's updates. */
export interface InvoiceListener {
  state(state: CheckoutState): void
  /** The invoice does not exist. */
  missing(): void
  /** The connection to the server was established or lost. */
  connection(isThere: boolean): void
}

/** An invoice that is monitored until the page is closed. */
export interface FollowedInvoice {
  /** @returns whether the server accepted the choice */
  choose(asset: string): Promise<boolean>
  /** Requests the state immediately. */
  refresh(): void
}

const REQUEST_MS = 12_000
/** Polling interval in milliseconds while the stream is unavailable. */
const POLL_MS = 4000
/** Time in milliseconds after which the state is requested if the stream has not sent it. */
const FIRST_MS = 1500
/**
 * Polling interval in milliseconds while the stream is open, because an intermediary may hold back
 * its data.
 */
const DISTRUST_MS = 60_000
const REOPEN_MS = [1000, 2000, 5000, 10_000, 30_000]

/** Reads one invoice from a stream, and by requests while the stream is unavailable. */
class InvoiceReader implements FollowedInvoice {
  readonly #path: string
  readonly #listener: InvoiceListener
  #stream: EventSource | null = null
  /** The stream has sent data since it was opened. */
  #isStreaming = false
  #failures = 0
  #lastRequestMs = 0
  /** Time of the newest state, as in `now`; empty: no state was received yet. */
  #newest = ''
  #hasEnded = false
  #isRequesting = false

  constructor(path: string, listener: InvoiceListener) {
    this.#path = path
    this.#listener = listener
  }

  start(): void {
    this.#open()
    setTimeout(() => {
      if (this.#newest === '') this.refresh()
    }, FIRST_MS)
    setInterval(() => {
      if (this.#hasEnded || document.hidden) return
      if (!this.#isStreaming || performance.now() - this.#lastRequestMs > DISTRUST_MS)
        this.refresh()
    }, POLL_MS)
    // A phone in standby has received nothing.
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden && !this.#hasEnded) this.refresh()
    })
  }

  refresh(): void {
    void this.#requestState()
  }

  async choose(asset: string): Promise<boolean> {
    try {
      const response = await fetch(`${this.#path}/asset`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ asset }),
        signal: AbortSignal.timeout(REQUEST_MS),
      })
      if (response.ok) this.#apply((await response.json()) as CheckoutState)
      return response.ok
    } catch {
      return false
    }
  }

  #apply(state: CheckoutState): void {
    this.#listener.connection(true)
    // Both are in the same form of ISO 8601, in UTC.
    if (state.now < this.#newest) return
    this.#newest = state.now
    this.#hasEnded = state.inv_status === 'Paid'
    if (this.#hasEnded) this.#stream?.close()
    this.#listener.state(state)
  }

  async #requestState(): Promise<void> {
    if (this.#isRequesting) return
    this.#isRequesting = true
    this.#lastRequestMs = performance.now()
    try {
      const response = await fetch(`${this.#path}/state`, {
        cache: 'no-store',
        signal: AbortSignal.timeout(REQUEST_MS),
      })
      if (response.status === 404) {
        this.#hasEnded = true
        this.#stream?.close()
        this.#listener.missing()
      } else if (response.ok) this.#apply((await response.json()) as CheckoutState)
      else this.#listener.connection(false)
    } catch {
      this.#listener.connection(false)
    } finally {
      this.#isRequesting = false
    }
  }

  #open(): void {
    if (this.#hasEnded) return
    this.#isStreaming = false
    this.#stream = new EventSource(`${this.#path}/events`)
    this.#stream.addEventListener('state', (event) => {
      this.#isStreaming = true
      this.#failures = 0
      this.#apply(JSON.parse((event as MessageEvent<string>).data) as CheckoutState)
    })
    this.#stream.addEventListener('error', () => {
      this.#isStreaming = false
      // A stream does not report why it failed.
      if (this.#newest === '') this.refresh()
      if (this.#stream?.readyState !== EventSource.CLOSED) return
      // The browser does not reconnect after a response that is not a stream.
      const pauseMs = REOPEN_MS[Math.min(this.#failures++, REOPEN_MS.length - 1)] as number
      setTimeout(() => this.#open(), pauseMs * (0.75 + Math.random() / 2))
    })
  }
}

/**
 * Receives every change from a stream, and polls while the stream is unavailable. Data older than
 * the last received state is dropped.
 * @param path of the invoice, `/checkout/{inv_id}`
 */
export function follow(path: string, listener: InvoiceListener): FollowedInvoice {
  const reader = new InvoiceReader(path, listener)
  reader.start()
  return reader
}
