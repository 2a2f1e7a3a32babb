// Receives events of the open sub-account; pages read the objects of an event again.
import { effect, signal } from '@preact/signals'
import { mirror, scope, session } from './scope.ts'
import { news } from './use.ts'

/** State of the event stream. */
export const liveState = signal<'off' | 'connecting' | 'live'>('off')

const RETRY_MS = 3000
const RETRY_MAX_MS = 30_000

interface ServerEvent {
  type: string
  object: string
  data: unknown
}

/** Reads server-sent events to their end. EventSource would require a list of all types. */
async function follow(
  url: string,
  signal: AbortSignal,
  last: { id: string | null },
): Promise<void> {
  const headers: Record<string, string> = last.id === null ? {} : { 'last-event-id': last.id }
  const response = await fetch(url, {
    signal,
    headers: { accept: 'text/event-stream', ...headers },
    credentials: 'same-origin',
  })
  if (!response.ok || response.body === null)
    throw new Error(`the stream answered ${response.status}`)
  liveState.value = 'live'
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (rest + value).replaceAll('\r\n', '\n').split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) dispatch(block, last)
  }
}

function dispatch(block: string, last: { id: string | null }): void {
  const field = (name: string) =>
    block
      .split('\n')
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).trim())
  const data = field('data').join('\n')
  if (data === '') return
  last.id = field('id')[0] ?? last.id
  try {
    const { type, object, data: inner } = JSON.parse(data) as ServerEvent
    news.value = { type, object, data: inner, at: Date.now() }
  } catch {
    // Not JSON, such as a proxy's message.
  }
}

/** Receives the events of the open sub-account while the page is visible. */
export function startLive(): void {
  let opened: AbortController | null = null
  const stop = () => {
    opened?.abort()
    opened = null
    liveState.value = 'off'
  }
  const start = async () => {
    stop()
    if (!session.peek()?.person || !scope.peek().hasSubAccount || document.hidden) return
    const mine = new AbortController()
    opened = mine
    const last = { id: null }
    for (let waitMs = RETRY_MS; !mine.signal.aborted; waitMs = Math.min(waitMs * 2, RETRY_MAX_MS)) {
      liveState.value = 'connecting'
      const began = Date.now()
      await follow(mirror('/dac/v1/events/stream'), mine.signal, last).catch(() => undefined)
      if (mine.signal.aborted) return
      liveState.value = 'connecting'
      if (Date.now() - began > RETRY_MAX_MS) waitMs = RETRY_MS
      await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
  }
  effect(() => {
    // Read here, so that a change of any of them restarts the effect.
    void [session.value?.person?.id, scope.value.subPath, scope.value.hasSubAccount]
    void start()
  })
  const resume = () => {
    void start()
    // Events during the pause are not sent again, so every page that uses events reads again.
    news.value = { type: 'missed', object: '', data: null, at: Date.now() }
  }
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) stop()
    else resume()
  })
  // Without waiting for the next connection attempt.
  addEventListener('online', resume)
}
