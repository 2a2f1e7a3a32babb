import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** Header in which the page sends the token of this start. */
const TOKEN_HEADER = 'x-approver-token'

/** What requests must match. */
export interface Expected {
  /** Origin of the page. */
  origin: string
  /** Token of this start. */
  token: string
}

/** A refused request. */
export interface Denial {
  status: number
  message: string
}

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

/** Headers of every response. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy':
    'publickey-credentials-create=(self), publickey-credentials-get=(self), clipboard-write=(self), camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

const isEqual = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))

const deny = (status: number, message: string): Denial => ({ status, message })

/** Checks that apply to a call of the page. */
function callDenial({ origin, token }: Expected, headers: IncomingHttpHeaders): Denial | null {
  if (headers.origin !== origin) return deny(403, 'The request is from another origin.')
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin')
    return deny(403, 'The request is from another site.')
  if (headers['content-type'] !== 'application/json')
    return deny(415, 'The body must be application/json.')
  const sent = headers[TOKEN_HEADER]
  // Buffer.from counts bytes, and a header is ASCII or Latin-1.
  if (typeof sent !== 'string' || !/^[\w-]+$/.test(sent) || !isEqual(sent, token))
    return deny(403, 'The page is of an earlier start of the program: reload it.')
  return null
}

/**
 * Checks a request before anything else is read of it. The Host header protects against DNS
 * rebinding; a service worker that another program installed must not be renewed.
 * @returns the refusal, or null
 */
export function denialOf(
  expected: Expected,
  method: string | undefined,
  path: string,
  headers: IncomingHttpHeaders,
): Denial | null {
  if (headers.host !== new URL(expected.origin).host)
    return deny(421, 'The request is for another host.')
  if (headers['service-worker'] !== undefined) return deny(404, 'There is no service worker.')
  if (path.startsWith('/api/'))
    return method === 'POST'
      ? callDenial(expected, headers)
      : deny(405, 'Only POST is allowed here.')
  return method === 'GET' || method === 'HEAD' ? null : deny(405, 'Only GET is allowed here.')
}

/**
 * Returns whether a browser requests the page for a window, without a service worker between them.
 * No page and no worker can set these headers. Requests of a worker that passes a window's request on
 * have another mode, and those that a browser sends ahead for a worker are marked.
 */
export const isNavigation = (headers: IncomingHttpHeaders): boolean =>
  headers['sec-fetch-mode'] === 'navigate' &&
  headers['sec-fetch-dest'] === 'document' &&
  headers['service-worker-navigation-preload'] === undefined
