import { signal } from '@preact/signals'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Problem, read, SignedElsewhere } from './http.ts'
import { setFailed, setSlow, SLOW_MS } from './network.ts'

/** State of a page's read of one URL. `data` is kept while it is read again. */
export interface Reading<T> {
  data: T | undefined
  problem: Problem | null
  isLoading: boolean
  reload(): void
}

/** Data that is displayed immediately on return to a page, and then read again. */
const cache = new Map<string, { data: unknown; at: number }>()
const CACHE_MAX = 60

/** Returns the cached data of a URL; null has none. */
const cached = <T>(url: string | null): T | undefined =>
  url === null ? undefined : (cache.get(url)?.data as T | undefined)

/** Stores data as the newest, and drops the oldest if there are more than {@link CACHE_MAX}. */
function store(url: string, data: unknown): void {
  cache.delete(url)
  cache.set(url, { data, at: Date.now() })
  if (cache.size > CACHE_MAX) cache.delete(cache.keys().next().value as string)
}

/** Latest event of the open sub-account. Reads with a matching `live` are repeated. See live.ts. */
export const news = signal<{ type: string; object: string; data: unknown; at: number } | null>(null)

/** Time in milliseconds within which several events cause only one read. */
const SETTLE_MS = 250

const asProblem = (error: unknown) =>
  error instanceof Problem
    ? error
    : new Problem(0, 'UNEXPECTED', error instanceof Error ? error.message : String(error))

/** State of the last read. `url`: the URL that it has read, which the caller may have changed. */
interface ReadState<T> {
  url: string | null
  data?: T
  problem: Problem | null
  isLoading: boolean
}

/** Calls `reload` after events whose type matches the pattern, at most once in {@link SETTLE_MS}. */
function useReloadOnEvents(pattern: string | undefined, reload: () => void): void {
  useEffect(() => {
    if (pattern === undefined) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const previous = news.peek()
    const stop = news.subscribe((event) => {
      if (
        event === null ||
        event === previous ||
        (event.type !== 'missed' && !new RegExp(pattern).test(event.type)) ||
        timer !== undefined
      )
        return
      timer = setTimeout(() => {
        timer = undefined
        reload()
      }, SETTLE_MS)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [pattern, reload])
}

/**
 * Reads a URL, and again when `live` matches an event's type.
 * @param url null: nothing is read yet
 * @param request function that reads it, for queries that the API accepts only by POST
 */
export function useRead<T>(
  url: string | null,
  live?: RegExp,
  request: (url: string) => Promise<T> = read,
): Reading<T> {
  const [state, setState] = useState<ReadState<T>>({
    url,
    data: cached<T>(url),
    problem: null,
    isLoading: url !== null,
  })
  const turn = useRef(0)
  const slow = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  // `turn` is also the key of this read among those that failed or are slow.
  const start = useCallback(
    (isRepeat: boolean) => {
      if (url === null) return
      const mine = ++turn.current
      clearTimeout(slow.current)
      slow.current = setTimeout(() => setSlow(turn, true), SLOW_MS)
      setState((before) => ({
        url,
        data: before.url === url ? before.data : cached<T>(url),
        // While a read is repeated in the background, the notice stays until the response.
        problem: isRepeat && before.url === url ? before.problem : null,
        isLoading: true,
      }))
      const end = (): boolean => {
        if (mine !== turn.current) return false
        clearTimeout(slow.current)
        setSlow(turn, false)
        return true
      }
      request(url).then(
        (data) => {
          if (!end()) return
          store(url, data)
          setFailed(turn, null)
          setState({ url, data, problem: null, isLoading: false })
        },
        (error: unknown) => {
          if (!end()) return
          const problem = asProblem(error)
          const readAt = cache.get(url)?.at ?? null
          setFailed(turn, { problem, readAt, repeat: () => start(true) })
          setState((before) => ({ ...before, url, problem, isLoading: false }))
        },
      )
    },
    [url],
  )
  const reload = useCallback(() => start(false), [start])
  useEffect(() => {
    reload()
    return () => {
      turn.current++
      clearTimeout(slow.current)
      setSlow(turn, false)
      setFailed(turn, null)
    }
  }, [reload])
  useReloadOnEvents(live?.source, reload)
  const isCurrent = state.url === url
  return {
    data: isCurrent ? state.data : cached<T>(url),
    problem: isCurrent ? state.problem : null,
    isLoading: isCurrent ? state.isLoading : url !== null,
    reload,
  }
}

/** Clears the cached data when another person signs in. */
export const forgetReadings = (): void => cache.clear()

/** Runs one action at a time, with its progress and its error. */
export function useAction(): {
  isBusy: boolean
  problem: Problem | null
  run(work: () => Promise<void>): Promise<void>
  clear(): void
} {
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const busy = useRef(false)
  const run = useCallback(async (work: () => Promise<void>) => {
    if (busy.current) return
    busy.current = true
    setBusy(true)
    setProblem(null)
    try {
      await work()
    } catch (error) {
      // The dialog for signing elsewhere is open, so no error is displayed.
      if (!(error instanceof SignedElsewhere)) setProblem(asProblem(error))
    } finally {
      busy.current = false
      setBusy(false)
    }
  }, [])
  return { isBusy, problem, run, clear: () => setProblem(null) }
}
