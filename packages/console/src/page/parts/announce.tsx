import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

interface Note {
  text: string
  tone: 'ok' | 'bad'
  at: number
}
const spoken = signal('')
const note = signal<Note | null>(null)
const NOTE_MS = 5000

/** Announces a text to screen readers. */
export function announce(text: string): void {
  spoken.value = text
}

/** Shows and announces that an action was completed. */
export function toast(text: string, tone: 'ok' | 'bad' = 'ok'): void {
  note.value = { text, tone, at: Date.now() }
}

export function Announcer() {
  const shown = note.value
  useEffect(() => {
    if (shown === null) return
    const timer = setTimeout(() => (note.value = null), NOTE_MS)
    return () => clearTimeout(timer)
  }, [shown])
  return (
    <>
      <div role="status" class="sr-only">
        {spoken.value}
      </div>
      <div class="toasts" role="status">
        {shown === null ? null : <p class={`toast tone-${shown.tone}`}>{shown.text}</p>}
      </div>
    </>
  )
}
