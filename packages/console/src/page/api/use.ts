import { signal } from '@preact/signals'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Problem, read, SignedElsewhere } from './http.ts'
import { setFailed, setSlow, SLOW_MS } from './network.ts'

/** What a page has of one address. `data` stays while it is read again. */
export interface Reading<T> {
  data: T | undefined
  problem: Problem | null
  isLoading: boolean
  reload(): void
}

/** Shown at once when one comes back to a page, and then read again. */
const kept = new Map<string, { data: unknown; at: number }>()
const KEPT_MAX = 60

/**
 * Events of the open sub-account, by their type; whoever reads `live` addresses reads again. See
 * live.ts.
 */
export const news = signal<{ type: string; object: string; data: unknown; at: number } | null>(null)

/** Several events that come together are one reason to read again. */
const SETTLE_MS = 250

const asProblem = (error: unknown) =>
  error instanceof Problem
    ? error
    : new Problem(0, 'UNEXPECTED', error instanceof Error ? error.message : String(error))

/**
 * Reads an address, and again when `live` fits an event's type.
 * @param url null: nothing yet
 * @param ask how it is read: what the API takes by POST alone is asked so
 */
export function useRead<T>(
  url: string | null,
  live?: RegExp,
  ask: (url: string) => Promise<T> = read,
): Reading<T> {
  const [state, setState] = useState<{
    url: string | null
    data?: T
    problem: Problem | null
    isLoading: boolean
  }>({
    url,
    data: url === null ? undefined : (kept.get(url)?.data as T | undefined),
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
        data: before.url === url ? before.data : (kept.get(url)?.data as T | undefined),
        // A repeat in the background leaves the notice until its answer.
        problem: isRepeat && before.url === url ? before.problem : null,
        isLoading: true,
      }))
      const end = (): boolean => {
        if (mine !== turn.current) return false
        clearTimeout(slow.current)
        setSlow(turn, false)
        return true
      }
      ask(url).then(
        (data) => {
          if (!end()) return
          kept.delete(url)
          kept.set(url, { data, at: Date.now() })
          if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value as string)
          setFailed(turn, null)
          setState({ url, data, problem: null, isLoading: false })
        },
        (error: unknown) => {
          if (!end()) return
          const problem = asProblem(error)
          setFailed(turn, { problem, readAt: kept.get(url)?.at ?? null, repeat: () => start(true) })
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
  const pattern = live?.source
  useEffect(() => {
    if (pattern === undefined) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const known = news.peek()
    const stop = news.subscribe((event) => {
      if (
        event === null ||
        event === known ||
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
  const isCurrent = state.url === url
  return {
    data: isCurrent
      ? state.data
      : url === null
        ? undefined
        : (kept.get(url)?.data as T | undefined),
    problem: isCurrent ? state.problem : null,
    isLoading: isCurrent ? state.isLoading : url !== null,
    reload,
  }
}

/** Forgets what was read: another person sits here now. */
export const forgetReadings = (): void => kept.clear()

/** Runs one action at a time: what it is doing, and why it was refused. */
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
      // Its dialog is open: nothing more is to be said here.
      if (!(error instanceof SignedElsewhere)) setProblem(asProblem(error))
    } finally {
      busy.current = false
      setBusy(false)
    }
  }, [])
  return { isBusy, problem, run, clear: () => setProblem(null) }
}
