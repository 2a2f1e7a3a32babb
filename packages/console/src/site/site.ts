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

/** The built control panel, cached in memory, so that no request reads the disk. */
export interface Site {
  /**
   * Returns the panel; the same bytes for every URL below /console.
   * @param encodings the request's `accept-encoding`
   */
  page(encodings: string | undefined): Answer
  /** Returns the public page of published reserves, which shares the panel's files. */
  reserves(encodings: string | undefined): Answer
  /** Returns a file of the panel by its hashed name. */
  asset: Assets
}

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))
export const NAME = 'the control panel'

/** Browser permissions that passkeys require; all others are denied. */
const PERMISSIONS = ['publickey-credentials-create', 'publickey-credentials-get']

/**
 * Reads the built control panel.
 * @throws Error with the command to run if it was not built
 */
export function loadSite(dist: string = DIST): Site {
  const assets = join(dist, 'assets')
  if (![join(dist, 'index.html'), join(dist, 'reserves.html'), assets].every(existsSync))
    throw new Error(howToBuild(NAME))
  const page = readFile(dist, 'index.html')
  const reserves = readFile(dist, 'reserves.html')
  const open = { ...pageHeaders([]), 'x-frame-options': 'DENY' }
  const headers = { ...pageHeaders([], PERMISSIONS), 'x-frame-options': 'DENY' }
  return {
    page(encodings) {
      const best = encoded(page, encodings)
      return { status: 200, headers: { ...best.headers, ...headers }, body: best.body }
    },
    reserves(encodings) {
      const best = encoded(reserves, encodings)
      return { status: 200, headers: { ...best.headers, ...open }, body: best.body }
    },
    asset: loadAssets(assets),
  }
}
