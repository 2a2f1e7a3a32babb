import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import { manyLines } from '@custody/chains/terminal'
import { startTracing } from '@custody/tracing'
import { giveBackWhenIdle } from './server/app/idle-memory.ts'
import { startPlatform } from './server/app/platform.ts'
import { readSettings } from './core/settings/settings.ts'

/** Maximum time of an orderly shutdown of `npm start` after SIGTERM or SIGINT, in milliseconds. */
const STOP_MS_MAX = 9500

process.on('unhandledRejection', (error) =>
  process.stderr.write(
    `custody: unhandled rejection: ${manyLines(error instanceof Error ? String(error.stack) : String(error))}\n`,
  ),
)

let ending = false
try {
  const settings = readSettings()
  const stopTracing = await startTracing('custody', process.env)
  // The operator interface is imported with the rest of the platform, while the servers that it
  // needs are starting.
  const platform = await startPlatform(settings, async (services) =>
    (await import('./server/operator/server.ts')).startOperatorServer(services),
  )
  const endGivingBack = giveBackWhenIdle()
  const end = () => {
    if (ending) return
    ending = true
    endGivingBack()
    setTimeout(() => process.exit(1), STOP_MS_MAX).unref()
    platform
      .stop()
      .then(stopTracing)
      .then(
        () => process.exit(0),
        (error: unknown) => {
          process.stderr.write(`custody: could not stop cleanly: ${manyLines(reasonOf(error))}\n`)
          process.exit(1)
        },
      )
  }
  // The handlers are installed before the platform reports that it is ready, because a process that
  // waits for this report may stop the platform immediately, and the platform's servers must be
  // stopped too.
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  process.stdout.write(`ready http://${settings.host}:${platform.port}\n`)
  const { announceFirstOwner } = await import('./server/app/first-owner.ts')
  const line =
    settings.role === 'all'
      ? await announceFirstOwner(platform.services, platform.port, process.stdout.isTTY)
      : null
  if (line !== null) process.stdout.write(`${line}\n`)
  if (settings.role === 'all')
    writeFileSync(join(settings.home, 'url'), `http://${settings.host}:${platform.port}`, {
      mode: 0o600,
    })
} catch (error) {
  // During a shutdown, the server may be closed already.
  if (!ending) {
    process.stderr.write(`custody: ${manyLines(reasonOf(error))}\n`)
    process.exit(1)
  }
}
