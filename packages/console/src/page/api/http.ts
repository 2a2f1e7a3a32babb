// The one place from which the panel asks anything: reading through the mirror, the panel's own
// routes, and refusals.
import { encode, decode } from './wire.ts'

/** Why something was refused: the API's problem document, or that nothing answered. */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly field: string | null
  readonly requestId: string | null
  /** A page that explains the code. */
  readonly link: string | null
  constructor(
    status: number,
    code: string,
    message: string,
    more: { field?: string; requestId?: string; link?: string } = {},
  ) {
    super(message)
    this.name = 'Problem'
    this.status = status
    this.code = code
    this.field = more.field ?? null
    this.requestId = more.requestId ?? null
    this.link = more.link ?? null
  }
}

/**
 * Thrown where a write was shown for signing elsewhere: nothing was sent, and whoever asked goes
 * back to where he was.
 */
export class SignedElsewhere extends Error {
  constructor() {
    super('this browser has no key that may sign it')
  }
}

/**
 * What the server's clock is ahead of this browser's, in milliseconds: from the `date` of its
 * answers.
 */
let aheadMs = 0
/** Unix milliseconds by the server's clock, to a second. */
export const serverNow = (): number => Date.now() + aheadMs

function learnClock(response: Response): void {
  const at = Date.parse(response.headers.get('date') ?? '')
  // Half a second in the middle of the second that the header names; what lies within it is no
  // difference.
  if (Number.isFinite(at))
    aheadMs = Math.abs(at + 500 - Date.now()) < 2000 ? 0 : at + 500 - Date.now()
}

const text = (value: unknown) => (typeof value === 'string' ? value : undefined)

async function problemOf(response: Response): Promise<Problem> {
  let told: Record<string, unknown> = {}
  try {
    told = decode(await response.text()) as Record<string, unknown>
  } catch {
    // A proxy's page: the status says enough.
  }
  const type = text(told['type'])
  const sentence = text(told['message']) ?? text(told['detail']) ?? text(told['title'])
  return new Problem(
    response.status,
    text(told['code']) ?? `HTTP_${response.status}`,
    sentence ?? 'the server gave no reason',
    {
      field: text(told['field']),
      requestId: text(told['request_id']) ?? response.headers.get('x-request-id') ?? undefined,
      link: type !== undefined && type !== 'about:blank' ? type : undefined,
    },
  )
}

/** Told of every 401, so that whoever is signed out sees it. */
let whenSignedOut: () => void = () => undefined
export function onSignedOut(tell: () => void): void {
  whenSignedOut = tell
}

const unreachable = () =>
  new Problem(
    0,
    'UNREACHABLE',
    'The platform does not answer. Check the connection; nothing was changed that you do not see here.',
  )

/** One request to this origin. @throws Problem */
export async function send(url: string, init: RequestInit = {}): Promise<Response> {
  let response: Response
  try {
    response = await fetch(url, {
      redirect: 'error',
      cache: 'no-store',
      credentials: 'same-origin',
      ...init,
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw unreachable()
  }
  learnClock(response)
  if (response.ok) return response
  const problem = await problemOf(response)
  if (problem.code === 'SIGN_IN_REQUIRED') whenSignedOut()
  throw problem
}

/** Body of an answer, amounts as text. @throws Problem */
export async function bodyOf<T>(response: Response): Promise<T> {
  // The connection can end within the body.
  const body = await response.text().catch(() => Promise.reject(unreachable()))
  if (body === '') return undefined as T
  try {
    return decode(body) as T
  } catch {
    throw new Problem(
      response.status,
      'NOT_JSON',
      'The answer is no JSON: is this address the platform, and no proxy?',
    )
  }
}

/**
 * A read without an answer after this time has failed: some networks lose connections without an
 * end.
 */
const READ_MAX_MS = 60_000

/**
 * Reads by the session: a path below /console/api, or one of the public API that anybody may read.
 * @throws Problem
 */
export const read = async <T>(url: string, signal?: AbortSignal): Promise<T> =>
  bodyOf<T>(
    await send(url, {
      signal: signal ?? AbortSignal.timeout(READ_MAX_MS),
      headers: { accept: 'application/json' },
    }),
  )

/** Asks for a factor once more; false: whoever was asked does not want to. */
let confirmPerson: () => Promise<boolean> = async () => false
export function onRecentSignInRequired(ask: () => Promise<boolean>): void {
  confirmPerson = ask
}

/**
 * A change of the panel's own things, or a question that is asked by POST. Where the sign-in is too
 * old for it, the person is asked for a factor, and it is sent again.
 * @param path below /console/api @throws Problem
 */
export async function panel<T>(
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body: unknown = {},
): Promise<T> {
  const ask = async () =>
    bodyOf<T>(
      await send(`/console/api${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        body: encode(body),
      }),
    )
  try {
    return await ask()
  } catch (error) {
    if (
      !(
        error instanceof Problem &&
        error.code === 'RECENT_SIGN_IN_REQUIRED' &&
        (await confirmPerson())
      )
    )
      throw error
    return ask()
  }
}

/** `?a=1&b=2` of what is set, or nothing. */
export function query(values: Record<string, string | number | null | undefined>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== '') parameters.set(name, String(value))
  }
  const all = parameters.toString()
  return all === '' ? '' : `?${all}`
}
