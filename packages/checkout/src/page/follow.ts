import type { CheckoutState } from '../state.ts'

/** Callbacks of an invoice's updates. */
export interface Ear {
  state(state: CheckoutState): void
  /** The invoice does not exist. */
  missing(): void
  /** The connection to the server was established or lost. */
  connection(isThere: boolean): void
}

/** An invoice that is monitored until the page is closed. */
export interface Followed {
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

/**
 * Receives every change from a stream, and polls while the stream is unavailable. Data older than
 * the last received state is dropped.
 * @param path of the invoice, `/checkout/{inv_id}`
 */
export function follow(path: string, ear: Ear): Followed {
  let stream: EventSource | null = null
  /** The stream has sent data since it was opened. */
  let tells = false
  let failures = 0
  let lastAskedMs = 0
  let newest = ''
  let ended = false
  let asking = false

  const take = (state: CheckoutState): void => {
    ear.connection(true)
    // Both are in the same form of ISO 8601, in UTC.
    if (state.now < newest) return
    newest = state.now
    ended = state.inv_status === 'Paid'
    if (ended) stream?.close()
    ear.state(state)
  }

  const ask = async (): Promise<void> => {
    if (asking) return
    asking = true
    lastAskedMs = performance.now()
    try {
      const response = await fetch(`${path}/state`, {
        cache: 'no-store',
        signal: AbortSignal.timeout(REQUEST_MS),
      })
      if (response.status === 404) {
        ended = true
        stream?.close()
        ear.missing()
      } else if (response.ok) take((await response.json()) as CheckoutState)
      else ear.connection(false)
    } catch {
      ear.connection(false)
    } finally {
      asking = false
    }
  }

  const open = (): void => {
    if (ended) return
    tells = false
    stream = new EventSource(`${path}/events`)
    stream.addEventListener('state', (event) => {
      tells = true
      failures = 0
      take(JSON.parse((event as MessageEvent<string>).data) as CheckoutState)
    })
    stream.addEventListener('error', () => {
      tells = false
      // A stream does not report why it failed.
      if (newest === '') void ask()
      if (stream?.readyState !== EventSource.CLOSED) return
      // The browser does not reconnect after a response that is not a stream.
      const pauseMs = REOPEN_MS[Math.min(failures++, REOPEN_MS.length - 1)] as number
      setTimeout(open, pauseMs * (0.75 + Math.random() / 2))
    })
  }

  open()
  setTimeout(() => {
    if (newest === '') void ask()
  }, FIRST_MS)
  setInterval(() => {
    if (ended || document.hidden) return
    if (!tells || performance.now() - lastAskedMs > DISTRUST_MS) void ask()
  }, POLL_MS)
  // A phone in standby has received nothing.
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && !ended) void ask()
  })

  return {
    refresh: () => void ask(),
    async choose(asset) {
      try {
        const response = await fetch(`${path}/asset`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ asset }),
          signal: AbortSignal.timeout(REQUEST_MS),
        })
        if (response.ok) take((await response.json()) as CheckoutState)
        return response.ok
      } catch {
        return false
      }
    },
  }
}
