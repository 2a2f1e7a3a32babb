import type { CheckoutState } from '../state.ts'

/** What is heard of an invoice. */
export interface Ear {
  state(state: CheckoutState): void
  /** There is no such invoice. */
  missing(): void
  /** Whether the server answers. */
  connection(isThere: boolean): void
}

/** An invoice that is followed until the page is left. */
export interface Followed {
  /** @returns whether the server took the choice */
  choose(asset: string): Promise<boolean>
  /** Asks at once. */
  refresh(): void
}

const REQUEST_MS = 12_000
/** How often is asked where the stream does not tell. */
const POLL_MS = 4000
/** The stream tells at once; where it has not by then, it is asked. */
const FIRST_MS = 1500
/**
 * A stream may be open and silent, where something between holds it back: so often is asked all the
 * same.
 */
const DISTRUST_MS = 60_000
const REOPEN_MS = [1000, 2000, 5000, 10_000, 30_000]

/**
 * Hears of every change by a stream, and asks where the stream is away; whatever is older than what
 * is known is dropped.
 * @param path of the invoice, `/checkout/{inv_id}`
 */
export function follow(path: string, ear: Ear): Followed {
  let stream: EventSource | null = null
  /** The stream has told something since it was opened. */
  let tells = false
  let failures = 0
  let lastAskedMs = 0
  let newest = ''
  let ended = false
  let asking = false

  const take = (state: CheckoutState): void => {
    ear.connection(true)
    // Both in the same form of ISO 8601, in UTC.
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
      // A stream does not say why it failed.
      if (newest === '') void ask()
      if (stream?.readyState !== EventSource.CLOSED) return
      // The browser gives up on an answer that is no stream.
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
  // A phone that was in a pocket has heard nothing.
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
