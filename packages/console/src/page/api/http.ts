// The only module that sends requests: reads through the mirror, the panel's own routes, and
// errors.
import { encode, decode } from './wire.ts'

/** Reason why a request failed: the API's problem document, or a missing response. */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly field: string | null
  readonly requestId: string | null
  /** URL of a page that explains the code. */
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
 * Thrown if a write was displayed for signing elsewhere. Nothing was sent, and the caller returns
 * to its earlier state.
 */
export class SignedElsewhere extends Error {
  constructor() {
    super('this browser has no key that is allowed to sign it')
  }
}

/**
 * Time in milliseconds by which the server's clock is ahead of this browser's, computed from the
 * `date` of its responses.
 */
let aheadMs = 0
/** Returns Unix milliseconds by the server's clock, accurate to a second. */
export const serverNow = (): number => Date.now() + aheadMs

function learnClock(response: Response): void {
  const at = Date.parse(response.headers.get('date') ?? '')
  // Half a second is added, because the header is truncated to a second; smaller differences are
  // ignored.
  if (Number.isFinite(at))
    aheadMs = Math.abs(at + 500 - Date.now()) < 2000 ? 0 : at + 500 - Date.now()
}

const text = (value: unknown) => (typeof value === 'string' ? value : undefined)

async function problemOf(response: Response): Promise<Problem> {
  let details: Record<string, unknown> = {}
  try {
    details = decode(await response.text()) as Record<string, unknown>
  } catch {
    // The body is a proxy's page, and the status is sufficient.
  }
  const type = text(details['type'])
  const sentence = text(details['message']) ?? text(details['detail']) ?? text(details['title'])
  return new Problem(
    response.status,
    text(details['code']) ?? `HTTP_${response.status}`,
    sentence ?? 'the server gave no reason',
    {
      field: text(details['field']),
      requestId: text(details['request_id']) ?? response.headers.get('x-request-id') ?? undefined,
      link: type !== undefined && type !== 'about:blank' ? type : undefined,
    },
  )
}

/** Called after every 401, so that the panel shows the sign-in. */
let whenSignedOut: () => void = () => undefined
export function onSignedOut(notify: () => void): void {
  whenSignedOut = notify
}

const unreachable = () =>
  new Problem(
    0,
    'UNREACHABLE',
    'The platform does not respond. Check the connection. Every completed change is shown here.',
  )

/**
 * Sends a request to this origin.
 * @throws Problem
 */
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

/**
 * Reads the body of a response, with amounts as text.
 * @throws Problem
 */
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
      'The response is not JSON: check that this address is the platform and not a proxy.',
    )
  }
}

/**
 * Time in milliseconds after which a read without a response has failed. Some networks lose
 * connections silently.
 */
const READ_MAX_MS = 60_000

/**
 * Reads with the session: a path below /console/api, or a public one of the API.
 * @throws Problem
 */
export const read = async <T>(url: string, signal?: AbortSignal): Promise<T> =>
  bodyOf<T>(
    await send(url, {
      signal: signal ?? AbortSignal.timeout(READ_MAX_MS),
      headers: { accept: 'application/json' },
    }),
  )

/** Requests a second factor again; resolves to false if the person declines. */
let confirmPerson: () => Promise<boolean> = async () => false
export function onRecentSignInRequired(ask: () => Promise<boolean>): void {
  confirmPerson = ask
}

/**
 * Sends a change of the panel's own data, or a query by POST. If the sign-in is too old for it, the
 * person must confirm a factor, and the request is sent again.
 * @param path below /console/api
 * @throws Problem
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

/** Returns `?a=1&b=2` of the values that are set, or an empty text. */
export function query(values: Record<string, string | number | null | undefined>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== '') parameters.set(name, String(value))
  }
  const all = parameters.toString()
  return all === '' ? '' : `?${all}`
}
