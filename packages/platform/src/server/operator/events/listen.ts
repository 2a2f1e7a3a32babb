import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { join } from 'node:path'
import { printNotice } from '@custody/chains/terminal'
import { reasonOf } from '@custody/chains/reason'
import { headersFor, newSecret, SECRET_BYTES } from '../../../events/webhooks/sign.ts'
import { OperatorError } from '../command.ts'
import { callPlatform, PlatformAway } from '../connect.ts'

const ASK_EVERY_MS = 300
const FORWARD_TIMEOUT_MS = 15_000
const SECRET_FILE = 'listen.secret'

type Values = Record<string, string | boolean | undefined>
interface Event {
  id: string
  type: string
  workspace: string | null
  sub_account: string | null
  object: string
  version: number
  timestamp: string
  body: string
  x_signature?: string
  /** Sent by `custody trigger`; nothing happened. */
  test?: true
}
interface Page {
  cursor: string
  /** Position in the test events. */
  tests: number
  events: Event[]
}
interface Forwarded {
  status: number | null
  error: string | null
  duration_ms: number
}

/**
 * Returns the secret by which forwarded events are signed. It is generated once for each data
 * folder and differs from the secrets of webhooks.
 */
function secretOf(home: string): string {
  const file = join(home, SECRET_FILE)
  if (!existsSync(file)) writeFileSync(file, newSecret(randomBytes(SECRET_BYTES)), { mode: 0o600 })
  return readFileSync(file, 'utf8').trim()
}

function forwardUrl(text: string | boolean | undefined): string | null {
  if (text === undefined) return null
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new OperatorError('--forward: must be a URL such as http://127.0.0.1:3000/webhooks')
  return url.href
}

async function forward(url: string, event: Event, secret: string): Promise<Forwarded> {
  const from = performance.now()
  const signed = await headersFor({
    id: event.id,
    body: event.body,
    secrets: [secret],
    now: Date.now(),
    key: null,
    test: event.test ?? false,
  })
  const { 'content-length': _, ...headers } = signed
  const took = () => Math.round(performance.now() - from)
  try {
    const answer = await fetch(url, {
      method: 'POST',
      body: event.body,
      redirect: 'manual',
      signal: AbortSignal.timeout(FORWARD_TIMEOUT_MS),
      headers: {
        ...headers,
        ...(event.x_signature === undefined ? {} : { 'x-signature': event.x_signature }),
      },
    })
    await answer.body?.cancel()
    return {
      status: answer.status,
      error: answer.ok ? null : `status ${answer.status}`,
      duration_ms: took(),
    }
  } catch (error) {
    return { status: null, error: reasonOf((error as Error).cause ?? error), duration_ms: took() }
  }
}

function lineOf(event: Event, forwarded: Forwarded | null): string {
  const workspace = event.workspace ?? 'all workspaces'
  const owner = event.sub_account === null ? workspace : `${workspace}/${event.sub_account}`
  const mark = event.test ? ' (test)' : ''
  const answer =
    forwarded === null
      ? ''
      : `  → ${forwarded.error ?? forwarded.status} (${forwarded.duration_ms} ms)`
  return `${event.timestamp.slice(11, 19)}  ${event.type.padEnd(22)} ${owner}  ${event.object} v${event.version}${mark}${answer}`
}

/**
 * Prints the events of the running platform as they occur, starting now, and posts them, signed, to
 * a developer's machine. If the receiver fails, this is printed and the event is not repeated:
 * `POST …/deliveries/{delivery}/resend` is for real webhooks.
 * @param signal ends the command
 */
export async function listen(
  home: string,
  values: Values,
  write: (line: string) => void,
  signal: AbortSignal,
): Promise<{ result: Record<string, unknown>; text: string }> {
  const url = forwardUrl(values['forward'])
  const isJson = values['json'] === true
  const ask = async (after: string | null, tests: number | null): Promise<Page> =>
    (await callPlatform(home, 'events', {
      after,
      tests,
      workspace: values['workspace'] ?? null,
      events: values['events'] ?? null,
      sign: url !== null,
    })) as unknown as Page
  let { cursor, tests } = await ask(null, null)
  const secret = url === null ? null : secretOf(home)
  if (!isJson) {
    if (secret !== null) write(`forwarding to ${url}, signed with ${secret}`)
    write('listening for events; Ctrl-C stops it')
  } else if (secret !== null) write(JSON.stringify({ forwarding: url, secret }))
  let count = 0
  let isAway = false
  while (!signal.aborted) {
    try {
      const page = await ask(cursor, tests)
      isAway = false
      for (const event of page.events) {
        if (signal.aborted) break
        const forwarded = url === null || secret === null ? null : await forward(url, event, secret)
        const { body, x_signature: __, ...shown } = event
        write(
          isJson
            ? JSON.stringify({
                ...shown,
                event: JSON.parse(body) as unknown,
                ...(forwarded === null ? {} : { forwarded }),
              })
            : lineOf(event, forwarded),
        )
        count++
      }
      ;({ cursor, tests } = page)
      if (page.events.length > 0) continue
    } catch (error) {
      if (!(error instanceof PlatformAway)) throw error
      if (!isAway)
        printNotice('the platform is not reachable; listening continues when it responds again')
      isAway = true
    }
    await pause(ASK_EVERY_MS, undefined, { signal }).catch(() => undefined)
  }
  return { result: { events: count }, text: `${count} events` }
}
