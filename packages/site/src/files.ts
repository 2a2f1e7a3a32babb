// What the platform answers for pages: built files, held in memory, in the best encoding a client
// takes, under a strict policy.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What is answered to one request; header names in lower case. */
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
 * An origin as browsers write it. What an operator typed into a header must not be able to add to
 * it.
 */
const ORIGIN = /^https?:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:]+\])(?::\d{1,5})?$/

/**
 * The headers of a page that may load its own files only, and be framed by nobody but these.
 * @param permissions what the page itself may use of the browser, beside writing to the clipboard
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

/** A built file, read once. @throws where it is not there */
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
 * The best form that a client takes (RFC 9110, `q=0` refuses). @param encodings the request's
 * `accept-encoding`
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

/** Answers the files of a page by their hashed names; null where there is none. */
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
    // Nobody else's page has a use for them. The name changes with the content.
    const more = {
      'cache-control': 'public, max-age=31536000, immutable',
      'cross-origin-resource-policy': 'same-origin',
    }
    return { status: 200, headers: { ...headers, ...more }, body }
  }
}

/** What stands in place of a page that was not built. @param what e.g. `the checkout page` */
export const notBuilt = (what: string): Answer => ({
  status: 503,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  body: `${howToBuild(what)}\n`,
})

/** What an operator is told where a page was not built. */
export const howToBuild = (what: string): string => `${what} is not built: run npm run sites`
