import { reasonOf } from '@custody/chains/reason'
import { z } from 'zod'
import { devnetControl, knownDevnetUrl } from '../../app/local/local.ts'
import type { Settings } from '../../../core/settings/settings.ts'
import { warning, type Finding } from './findings.ts'

/**
 * State of the local chains. `running`: their URL, and the networks whose chain was started; the
 * others start with their first request, which takes seconds and memory, so a health check does not
 * start them. `failed`: why they do not respond.
 */
export type LocalChains =
  | { state: 'running'; url: string; started: ReadonlySet<string> }
  | { state: 'away' }
  | { state: 'failed'; reason: string }

const info = z.object({
  networks: z.record(z.string(), z.object({ height: z.number().nullable() })),
})

/**
 * Checks the local chains.
 * @param isRunning whether a platform runs with the data folder: then its local chains must
 *   respond, and so must those that a setting names
 */
export async function askLocalChains(
  settings: Pick<Settings, 'home' | 'localChains'>,
  isRunning: boolean,
): Promise<LocalChains> {
  const url = settings.localChains ?? knownDevnetUrl(settings.home)
  if (url === null) return { state: 'away' }
  try {
    const { networks } = info.parse(await devnetControl(url)({ command: 'info' }))
    const started = Object.entries(networks)
      .filter(([, { height }]) => height !== null)
      .map(([code]) => code)
    return { state: 'running', url, started: new Set(started) }
  } catch (error) {
    // No platform runs with the data folder, so the port may belong to another program by now.
    if (!isRunning && settings.localChains === null) return { state: 'away' }
    return { state: 'failed', reason: `${url} does not respond: ${reasonOf(error)}` }
  }
}

/**
 * Returns the finding about the checks that were skipped because no platform runs with the data
 * folder.
 */
export const notRunning = (): Finding =>
  warning(
    'platform',
    'not running: chains, signer nodes, database and prices were not checked',
    'start it with "npm start"',
  )
