import { useEffect, useRef, useState } from 'preact/hooks'
import type { CheckoutState } from '../../state.ts'
import { useSpeech, type Speech } from '../language.ts'
import { announce } from './announcer.tsx'
import { ClockIcon } from './icons.tsx'

const MINUTE_MS = 60_000
/** Remaining time in milliseconds from which seconds are displayed. */
const LAST_MS = 5 * MINUTE_MS
/** Remaining time in milliseconds above which the time of day is displayed instead of minutes. */
const HOUR_MS = 60 * MINUTE_MS
/** Interval in milliseconds at which the server is queried once the time is over. */
const ASKED_EVERY_MS = 3000
const ANNOUNCED_MINUTES = [10, 5, 1]

/** Returns the server's time: the last received one plus the time since. */
export const serverNow = (reported: { now: string; heardMs: number }): number =>
  Date.parse(reported.now) + performance.now() - reported.heardMs

const clockText = (leftMs: number): string => {
  const seconds = Math.ceil(leftMs / 1000)
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
}

function textOf(speech: Speech, leftMs: number, expiry: string, now: number): string {
  const { words } = speech
  if (leftMs > HOUR_MS)
    return speech.translate(words.payBy, { time: speech.time(new Date(expiry), new Date(now)) })
  return leftMs > LAST_MS ? speech.count(words.minutesLeft, Math.ceil(leftMs / MINUTE_MS)) : ''
}

/**
 * Remaining time to pay. Seconds are displayed only at the end. Screen readers announce 10, 5 and 1
 * minutes.
 */
export function TimeLeft({
  state,
  heardMs,
  onEnd,
}: {
  state: CheckoutState
  heardMs: number
  onEnd: () => void
}) {
  const speech = useSpeech()
  const [, tick] = useState(0)
  const now = serverNow({ now: state.now, heardMs })
  const leftMs = Math.max(0, Date.parse(state.expiry) - now)
  const announced = useRef<number | null | undefined>(undefined)
  useEffect(() => {
    const ended = leftMs === 0
    if (ended) onEnd()
    // Until the next second if seconds are displayed, otherwise until the minutes change.
    const runningMs =
      leftMs > LAST_MS
        ? Math.min(leftMs % MINUTE_MS || MINUTE_MS, leftMs - LAST_MS)
        : leftMs % 1000 || 1000
    const timer = setTimeout(
      () => tick((count) => count + 1),
      ended ? ASKED_EVERY_MS : runningMs + 5,
    )
    return () => clearTimeout(timer)
  })
  useEffect(() => {
    const due = ANNOUNCED_MINUTES.findLast((minutes) => leftMs <= minutes * MINUTE_MS) ?? null
    const before = announced.current
    announced.current = due
    // A state that existed when the page was opened is not announced.
    if (before !== undefined && due !== null && due !== before && leftMs > 0)
      announce(speech.count(speech.words.minutesLeft, due))
  })
  const isLast = leftMs <= LAST_MS
  const sentence = isLast
    ? speech.say(speech.words.lastMinutes, {
        time: (
          <bdi dir="ltr" class="seconds">
            {clockText(leftMs)}
          </bdi>
        ),
      })
    : textOf(speech, leftMs, state.expiry, now)
  return (
    <p class={isLast ? 'time-left is-last' : 'time-left'} role="timer" aria-live="off">
      <ClockIcon />
      <span>{sentence}</span>
    </p>
  )
}
