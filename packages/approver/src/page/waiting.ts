import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { ApprovalView } from '../views.ts'
import { call, problemOf, type Problem } from './api.ts'

/** Interval in milliseconds at which a visible page reads the list, and the longest after failures. */
const REFRESH_MS = 10_000
const REFRESH_MAX_MS = 300_000

interface List {
  data: ApprovalView[]
  /** Position of the next page; null: there is none. */
  next: string | null
}

/** What waits for approvals, as the local server has verified it. */
export interface Waiting {
  /** null: it was not read yet. */
  list: List | null
  /** Why the last read failed; null: it did not. */
  problem: Problem | null
  isBusy: boolean
  /** Reads the displayed pages again. */
  refresh(): void
  /** Reads one more page. */
  more(): void
}

/** Reads the first pages of the list. @param pages at least 1 */
async function readPages(pages: number): Promise<List> {
  let list = await call<List>('approvals', {})
  for (let page = 1; page < pages && list.next !== null; page++) {
    const following = await call<List>('approvals', { after: list.next })
    list = { ...following, data: [...list.data, ...following.data] }
  }
  return list
}

/** Returns the interval in milliseconds after a number of failures in a row. */
const intervalOf = (failures: number): number =>
  Math.min(REFRESH_MAX_MS, REFRESH_MS * 2 ** Math.min(failures, 10))

/**
 * Reads what waits, and again every ten seconds while the page is visible; after failures less often.
 * One read is in progress at a time.
 */
export function useWaiting(): Waiting {
  const [list, setList] = useState<List | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [isBusy, setBusy] = useState(false)
  const state = useRef({ pages: 1, failures: 0, isReading: false, timer: 0 })
  const read = useCallback(async (pages: number) => {
    const now = state.current
    if (now.isReading) return
    clearTimeout(now.timer)
    now.isReading = true
    try {
      setList(await readPages(pages))
      setProblem(null)
      now.pages = pages
      now.failures = 0
    } catch (error) {
      now.failures++
      setProblem(problemOf(error))
    } finally {
      now.isReading = false
      if (!document.hidden)
        now.timer = window.setTimeout(() => void read(now.pages), intervalOf(now.failures))
    }
  }, [])
  useEffect(() => {
    const follow = () => {
      clearTimeout(state.current.timer)
      if (!document.hidden) void read(state.current.pages)
    }
    document.addEventListener('visibilitychange', follow)
    return () => {
      document.removeEventListener('visibilitychange', follow)
      clearTimeout(state.current.timer)
    }
  }, [])
  // A read that the person starts disables the buttons; one in the background leaves them as they are.
  const start = (pages: number) => {
    setBusy(true)
    void read(pages).finally(() => setBusy(false))
  }
  return {
    list,
    problem,
    isBusy,
    refresh: () => start(state.current.pages),
    more: () => start(state.current.pages + 1),
  }
}
