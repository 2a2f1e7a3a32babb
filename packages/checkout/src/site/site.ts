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

/** The built page and widget, cached in memory, so that no request reads the disk. */
export interface Site {
  /**
   * Returns the page of an invoice; the same bytes for every one.
   * @param frameAncestors origins that may embed it in a frame; null if the invoice does not exist
   *   (404)
   * @param encodings the request's `accept-encoding`
   */
  page(frameAncestors: readonly string[] | null, encodings: string | undefined): Answer
  /** Returns a file of the page by its hashed name. */
  asset: Assets
  /** @param existing the request's `if-none-match` */
  widget(encodings: string | undefined, existing: string | undefined): Answer
}

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))
/** Name in the error message if it is missing. */
export const NAME = 'the checkout page'

/**
 * Reads the built page and widget.
 * @throws Error with the command to run if they were not built
 */
export function loadSite(dist: string = DIST): Site {
  const assets = join(dist, 'assets')
  if (![join(dist, 'index.html'), join(dist, 'widget.js'), assets].every(existsSync))
    throw new Error(howToBuild(NAME))
  const page = readFile(dist, 'index.html')
  const missing = readFile(dist, 'missing.html')
  const widget = readFile(dist, 'widget.js')
  return {
    page(frameAncestors, encodings) {
      const { headers, body } = encoded(frameAncestors === null ? missing : page, encodings)
      return {
        status: frameAncestors === null ? 404 : 200,
        headers: { ...headers, ...pageHeaders(frameAncestors ?? []) },
        body,
      }
    },
    asset: loadAssets(assets),
    widget(encodings, cached) {
      const { headers, body } = encoded(widget, encodings)
      const all = {
        ...headers,
        etag: widget.etag,
        'cache-control': 'public, max-age=300',
        'cross-origin-resource-policy': 'cross-origin',
      }
      const isKnown = (cached ?? '')
        .split(',')
        .some((each) => each.trim().replace(/^W\//, '') === widget.etag)
      return isKnown ? { status: 304, headers: all, body: '' } : { status: 200, headers: all, body }
    },
  }
}
