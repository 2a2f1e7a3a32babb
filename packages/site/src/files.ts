// Built files of pages. The platform serves them from memory, in the best encoding that a client
// accepts, with a strict content security policy.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Response to one request; header names in lower case. */
export interface Answer {
  status: number
  headers: Record<string, string>
  body: Buffer | string
}

/** A built file and its compressed forms. */
export interface File {
  type: string
  plain: Buffer
  br: Buffer | null
  gzip: Buffer | null
  etag: string
}

const TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  html: 'text/html; charset=utf-8',
}

/**
 * An origin as browsers write it. An operator's entry must not be able to add anything else to a
 * header.
 */
const ORIGIN = /^https?:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:]+\])(?::\d{1,5})?$/

/**
 * Returns the headers of a page that may load only its own files, and may only be framed by the
 * given origins.
 * @param permissions browser features that the page may use, in addition to writing to the
 *   clipboard
 */
export function pageHeaders(
  frameAncestors: readonly string[],
  permissions: readonly string[] = [],
): Record<string, string> {
  const origins = frameAncestors.filter((origin) => ORIGIN.test(origin))
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${origins.length === 0 ? "'none'" : origins.join(' ')}`,
  ]
  const allowed = ['clipboard-write', ...permissions].map((name) => `${name}=(self)`)
  return {
    'content-type': TYPES['html'] as string,
    'cache-control': 'no-store',
    'content-security-policy': policy.join('; '),
    'referrer-policy': 'no-referrer',
    'permissions-policy': [
      ...allowed,
      'camera=()',
      'microphone=()',
      'geolocation=()',
      'payment=()',
      'usb=()',
      'browsing-topics=()',
    ].join(', '),
    'cross-origin-opener-policy': 'same-origin',
  }
}

/**
 * Reads a built file once.
 * @throws Error if it does not exist
 */
export function readFile(folder: string, name: string): File {
  const compressed = (suffix: string) =>
    existsSync(join(folder, name + suffix)) ? readFileSync(join(folder, name + suffix)) : null
  const plain = readFileSync(join(folder, name))
  return {
    type: TYPES[name.split('.').at(-1) as string] ?? 'application/octet-stream',
    plain,
    br: compressed('.br'),
    gzip: compressed('.gz'),
    etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`,
  }
}

/**
 * Returns the best form that a client accepts (RFC 9110; `q=0` rejects an encoding).
 * @param encodings the request's `accept-encoding`
 */
export function encoded(
  file: File,
  encodings: string | undefined,
): Pick<Answer, 'headers' | 'body'> {
  const taken = new Set(
    (encodings ?? '')
      .toLowerCase()
      .split(',')
      .flatMap((each) => {
        const [name, quality] = each.split(';').map((part) => part.trim())
        return quality !== undefined && /^q=0(?:\.0*)?$/.test(quality) ? [] : [name]
      }),
  )
  const headers = { 'content-type': file.type, vary: 'accept-encoding' }
  if (file.br && taken.has('br'))
    return { headers: { ...headers, 'content-encoding': 'br' }, body: file.br }
  if (file.gzip && taken.has('gzip'))
    return { headers: { ...headers, 'content-encoding': 'gzip' }, body: file.gzip }
  return { headers, body: file.plain }
}

/** Returns the file of a page by its hashed name; null if it does not exist. */
export type Assets = (name: string, encodings: string | undefined) => Answer | null

/**
 * Reads all files of a page.
 * @param folder its `assets`
 */
export function loadAssets(folder: string): Assets {
  const files = new Map(
    readdirSync(folder)
      .filter((name) => !/\.(?:br|gz)$/.test(name))
      .map((name) => [name, readFile(folder, name)]),
  )
  return (name, encodings) => {
    const file = files.get(name)
    if (!file) return null
    const { headers, body } = encoded(file, encodings)
    // Pages of other origins do not need them. The name changes with the content.
    const more = {
      'cache-control': 'public, max-age=31536000, immutable',
      'cross-origin-resource-policy': 'same-origin',
    }
    return { status: 200, headers: { ...headers, ...more }, body }
  }
}

/**
 * Returns the response for a page that was not built.
 * @param what for example `the checkout page`
 */
export const notBuilt = (what: string): Answer => ({
  status: 503,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  body: `${howToBuild(what)}\n`,
})

/** Returns the message for the operator if a page was not built. */
export const howToBuild = (what: string): string => `${what} is not built: run npm run compile`
