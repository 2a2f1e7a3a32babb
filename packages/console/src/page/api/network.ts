// Tracks reads that failed or are slow. One notice reports them, and they are repeated when that
// can help.
import { effect, signal } from '@preact/signals'
import type { Problem } from './http.ts'

/** A mounted read whose last attempt failed. */
export interface FailedRead {
  problem: Problem
  /** Time in Unix milliseconds at which the displayed data was read; null if there is none. */
  readAt: number | null
  /** Reads again, and keeps the displayed data until the response. */
  repeat(): void
}

/** Failed reads of the open page, each under its own key. */
export const failedReads = signal<ReadonlyMap<object, FailedRead>>(new Map())
/** Reads that have no response after {@link SLOW_MS}. */
export const slowReads = signal<ReadonlySet<object>>(new Set())
/** Whether the platform runs on this device, so that it is reachable without a network. */
export const isLocal = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(location.hostname)
/** The browser's state of this device's network. False is certain, true is not. */
export const isOnline = signal(navigator.onLine)

export const SLOW_MS = 5000
const RETRY_MS = 5000
const RETRY_MAX_MS = 60_000

export function setFailed(key: object, failed: FailedRead | null): void {
  if (failed === null && !failedReads.peek().has(key)) return
  const next = new Map(failedReads.peek())
  if (failed === null) next.delete(key)
  else next.set(key, failed)
  failedReads.value = next
}

export function setSlow(key: object, isSlow: boolean): void {
  if (isSlow === slowReads.peek().has(key)) return
  const next = new Set(slowReads.peek())
  if (isSlow) next.add(key)
  else next.delete(key)
  slowReads.value = next
}

/** Returns whether the same read can succeed later without any change by the person. */
const isTransient = ({ problem: { code, status } }: FailedRead): boolean =>
  code === 'UNREACHABLE' || [502, 503, 504].includes(status)

/** Repeats failed reads: all of them, or those that can succeed without changes. */
export function repeatFailed(which: 'all' | 'transient' = 'all'): void {
  for (const each of failedReads.peek().values())
    if (which === 'all' || isTransient(each)) each.repeat()
}

/**
 * Repeats failed reads with growing pauses, and immediately when the device is online or the page
 * visible again.
 */
export function startNetwork(): void {
  let waitMs = RETRY_MS
  let timer: ReturnType<typeof setTimeout> | undefined
  addEventListener('offline', () => (isOnline.value = false))
  addEventListener('online', () => {
    isOnline.value = true
    repeatFailed('transient')
  })
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) repeatFailed('transient')
  })
  effect(() => {
    const isAny = [...failedReads.value.values()].some(isTransient)
    if (!isAny) waitMs = RETRY_MS
    if (!isAny || (!isOnline.value && !isLocal)) {
      clearTimeout(timer)
      timer = undefined
      return
    }
    if (timer !== undefined) return
    timer = setTimeout(() => {
      timer = undefined
      waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)
      if (!document.hidden) repeatFailed('transient')
    }, waitMs)
  })
}
