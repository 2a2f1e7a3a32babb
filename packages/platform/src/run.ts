import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import { startTracing } from '@custody/tracing'
import { startPlatform } from './app/platform.ts'
import { consoleOrigin, firstOwnerToken, linkOf } from './people/invitations.ts'
import { startOperatorServer } from './operator/server.ts'
import { readSettings } from './settings/settings.ts'

/** `npm start`: runs the platform and stays until SIGTERM or SIGINT. */
const STOP_MS_MAX = 9500

process.on(
  'unhandledRejection',
  (error) => process.stderr.write(`custody: unhandled rejection: ${error instanceof Error ? error.stack : String(error)}\n`)
)

try {
  const settings = readSettings()
  const stopTracing = await startTracing('custody', process.env)
  const platform = await startPlatform(settings, startOperatorServer)
  process.stdout.write(`ready http://${settings.host}:${platform.port}\n`)
  const first = settings.role === 'all' ? await firstOwnerToken(platform.services) : null
  if (first !== null) process.stdout.write(`console ${linkOf(consoleOrigin(settings, platform.port), first)}\n`)
  if (settings.role === 'all') writeFileSync(join(settings.home, 'url'), `http://${settings.host}:${platform.port}`, { mode: 0o600 })
  let ending = false
  const end = () => {
    if (ending) return
    ending = true
    setTimeout(() => process.exit(1), STOP_MS_MAX).unref()
    platform.stop().then(stopTracing).then(() => process.exit(0), (error: unknown) => {
      process.stderr.write(`custody: could not stop cleanly: ${reasonOf(error)}\n`)
      process.exit(1)
    })
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
} catch (error) {
  process.stderr.write(`custody: ${reasonOf(error)}\n`)
  process.exit(1)
}
