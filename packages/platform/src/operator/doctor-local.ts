import { reasonOf } from '@custody/chains/reason'
import { z } from 'zod'
import { devnetControl, knownDevnetUrl } from '../app/local.ts'
import type { Settings } from '../settings/settings.ts'
import { warning, type Finding } from './doctor-findings.ts'

/**
 * What there is of the local chains. `running`: where they are, and the networks whose chain has
 * been started by somebody; the others start with their first request, which takes seconds and
 * memory, and a question after health is none. `failed`: why they do not answer.
 */
export type LocalChains =
  | { state: 'running'; url: string; started: ReadonlySet<string> }
  | { state: 'away' }
  | { state: 'failed'; reason: string }

const info = z.object({
  networks: z.record(z.string(), z.object({ height: z.number().nullable() })),
})

/**
 * @param isRunning whether a platform runs on the home: then its local chains must answer, and so
 *   must those that a setting names
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
    // The port may be another program's by now.
    if (!isRunning && settings.localChains === null) return { state: 'away' }
    return { state: 'failed', reason: `${url} does not respond: ${reasonOf(error)}` }
  }
}

/** What was left out at a home where nothing runs. */
export const notRunning = (): Finding =>
  warning(
    'platform',
    'not running: chains, signer nodes, database and prices were not checked',
    'start it with "npm start"',
  )
