import { howToBuild, loadAssets, type Assets } from '@custody/site'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ApproverError } from '../errors.ts'

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))
/** Text in the built page that is replaced by the token of a start. */
const PLACEHOLDER = 'TOKEN-OF-THIS-START'

/** The built page, cached in memory. */
export interface Site {
  /** Returns the page with the token of this start. */
  page(token: string): string
  asset: Assets
}

/** Reads the built page. @throws ApproverError with the command to run if it was not built */
export function loadSite(dist: string = DIST): Site {
  const page = join(dist, 'index.html')
  const assets = join(dist, 'assets')
  if (!existsSync(page) || !existsSync(assets))
    throw new ApproverError('NOT_BUILT', howToBuild('the page of the approver'))
  const html = readFileSync(page, 'utf8')
  if (!html.includes(PLACEHOLDER))
    throw new ApproverError('NOT_BUILT', howToBuild('the page of the approver'))
  return {
    page: (token) => html.replace(PLACEHOLDER, token),
    asset: loadAssets(assets),
  }
}
