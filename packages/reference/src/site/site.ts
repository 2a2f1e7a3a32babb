import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  encoded,
  howToBuild,
  loadAssets,
  pageHeaders,
  readFile,
  type Answer,
  type Assets,
} from '@custody/site'

/** The built reference, cached in memory, so that no request reads the disk. */
export interface Site {
  /**
   * Returns the reference.
   * @param encodings the request's `accept-encoding`
   */
  page(encodings: string | undefined): Answer
  /**
   * Returns another page in the reference's style.
   * @param body HTML, escaped where necessary
   */
  plain(title: string, body: string): Answer
  /** Returns a file of the page by its hashed name. */
  asset: Assets
}

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))
export const NAME = 'the API reference'

/**
 * Reads the built reference.
 * @throws Error with the command to run if it was not built
 */
export function loadSite(dist: string = DIST): Site {
  const assets = join(dist, 'assets')
  if (!existsSync(join(dist, 'index.html')) || !existsSync(assets))
    throw new Error(howToBuild(NAME))
  const page = readFile(dist, 'index.html')
  const head = /<link rel="(?:icon|stylesheet)"[^>]*>/g
  const links = [...page.plain.toString('utf8').matchAll(head)].map(([link]) => link).join('\n')
  const headers: Record<string, string> = { ...pageHeaders([]), 'x-frame-options': 'DENY' }
  // Scalar inserts style sheets and style attributes into the page. Scripts are still loaded only
  // from this server, and requests go only to it.
  const policy = (headers['content-security-policy'] as string).replace(
    "style-src 'self'",
    "style-src 'self' 'unsafe-inline'",
  )
  return {
    page(encodings) {
      const best = encoded(page, encodings)
      return {
        status: 200,
        headers: { ...best.headers, ...headers, 'content-security-policy': policy },
        body: best.body,
      }
    },
    plain(title, body) {
      const text = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
${links}
</head>
<body>
<header class="bar"><a class="name" href="/reference">API reference</a><a href="/reference/errors">Errors</a></header>
<main class="plain">
${body}
</main>
</body>
</html>
`
      return { status: 200, headers, body: text }
    },
    asset: loadAssets(assets),
  }
}
