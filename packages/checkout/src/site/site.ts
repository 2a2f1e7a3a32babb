import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What is answered to one request; header names in lower case. */
export interface Answer {
  status: number
  headers: Record<string, string>
  body: Buffer | string
}

/** The built page and widget, held in memory: no request reaches the disk. */
export interface Site {
  /**
   * The page of an invoice; the same bytes for every one.
   * @param frameAncestors origins that may show it in a frame; null where there is no such invoice (404)
   * @param encodings the request's `accept-encoding`
   */
  page(frameAncestors: readonly string[] | null, encodings: string | undefined): Answer
  /** A file of the page by its hashed name; null where there is none. */
  asset(name: string, encodings: string | undefined): Answer | null
  /** @param known the request's `if-none-match` */
  widget(encodings: string | undefined, known: string | undefined): Answer
}

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))
const TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml', html: 'text/html; charset=utf-8',
}
const HOW_TO_BUILD = 'the checkout page is not built: run npm run build'

/** An origin as browsers write it. What an operator typed into a header must not be able to add to it. */
const ORIGIN = /^https?:\/\/(?:[a-z0-9._-]+|\[[0-9a-f:]+\])(?::\d{1,5})?$/

/** A file and its compressed forms. */
interface File {
  type: string
  plain: Buffer
  br: Buffer | null
  gzip: Buffer | null
  etag: string
}

/** The headers of a page that may load its own files only, and be framed by nobody but these. */
function pageHeaders(frameAncestors: readonly string[]): Record<string, string> {
  const origins = frameAncestors.filter((origin) => ORIGIN.test(origin))
  const policy = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:", "base-uri 'none'",
    "form-action 'none'", `frame-ancestors ${origins.length === 0 ? "'none'" : origins.join(' ')}`,
  ]
  return {
    'content-type': TYPES['html'] as string,
    'cache-control': 'no-store',
    'content-security-policy': policy.join('; '),
    'referrer-policy': 'no-referrer',
    'permissions-policy': 'clipboard-write=(self), camera=(), microphone=(), geolocation=(), payment=(), usb=(), browsing-topics=()',
    'cross-origin-opener-policy': 'same-origin',
  }
}

function read(folder: string, name: string): File {
  const compressed = (suffix: string) => (existsSync(join(folder, name + suffix)) ? readFileSync(join(folder, name + suffix)) : null)
  const plain = readFileSync(join(folder, name))
  return {
    type: TYPES[name.split('.').at(-1) as string] ?? 'application/octet-stream',
    plain, br: compressed('.br'), gzip: compressed('.gz'),
    etag: `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`,
  }
}

/** The best form that a client takes (RFC 9110, `q=0` refuses). */
function encoded(file: File, encodings: string | undefined): Pick<Answer, 'body'> & { headers: Record<string, string> } {
  const taken = new Set((encodings ?? '').toLowerCase().split(',').flatMap((each) => {
    const [name, quality] = each.split(';').map((part) => part.trim())
    return quality !== undefined && /^q=0(?:\.0*)?$/.test(quality) ? [] : [name]
  }))
  const headers = { 'content-type': file.type, vary: 'accept-encoding' }
  if (file.br && taken.has('br')) return { headers: { ...headers, 'content-encoding': 'br' }, body: file.br }
  if (file.gzip && taken.has('gzip')) return { headers: { ...headers, 'content-encoding': 'gzip' }, body: file.gzip }
  return { headers, body: file.plain }
}

/** What stands in place of a page that was not built. */
export const notBuilt: Answer = {
  status: 503,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  body: `${HOW_TO_BUILD}\n`,
}

/**
 * Reads the built page and widget.
 * @throws Error with what to run, where they were not built
 */
export function loadSite(dist: string = DIST): Site {
  const assets = join(dist, 'assets')
  if (!existsSync(join(dist, 'index.html')) || !existsSync(join(dist, 'widget.js')) || !existsSync(assets)) throw new Error(HOW_TO_BUILD)
  const page = read(dist, 'index.html')
  const missing = read(dist, 'missing.html')
  const widget = read(dist, 'widget.js')
  const files = new Map(readdirSync(assets).filter((name) => !/\.(?:br|gz)$/.test(name)).map((name) => [name, read(assets, name)]))
  return {
    page(frameAncestors, encodings) {
      const { headers, body } = encoded(frameAncestors === null ? missing : page, encodings)
      return { status: frameAncestors === null ? 404 : 200, headers: { ...headers, ...pageHeaders(frameAncestors ?? []) }, body }
    },
    asset(name, encodings) {
      const file = files.get(name)
      if (!file) return null
      const { headers, body } = encoded(file, encodings)
      // Nobody else's page has a use for them. The name changes with the content.
      const more = { 'cache-control': 'public, max-age=31536000, immutable', 'cross-origin-resource-policy': 'same-origin' }
      return { status: 200, headers: { ...headers, ...more }, body }
    },
    widget(encodings, known) {
      const { headers, body } = encoded(widget, encodings)
      const all = {
        ...headers, etag: widget.etag, 'cache-control': 'public, max-age=300', 'cross-origin-resource-policy': 'cross-origin',
      }
      const isKnown = (known ?? '').split(',').some((each) => each.trim().replace(/^W\//, '') === widget.etag)
      return isKnown ? { status: 304, headers: all, body: '' } : { status: 200, headers: all, body }
    },
  }
}
