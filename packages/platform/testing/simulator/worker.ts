// A process that runs the seeds that it receives (jobs.ts).
import { SimulatedServer } from './setup-mode.ts'
import { playSeed, type SeedOptions } from './play-seed.ts'

const terms = JSON.parse(process.argv[2] as string) as SeedOptions
const databaseServer = new SimulatedServer()
let isEnding = false
async function end(): Promise<void> {
  if (isEnding) return
  isEnding = true
  await databaseServer.stop()
  process.exit(0)
}
// The process ends when the process that sent the seeds ends, for any reason.
process.once('disconnect', () => void end())
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end())
if (terms.mode === 'faults') await databaseServer.start()
process.on('message', (seed: number | 'end') => {
  if (seed === 'end') return void end()
  playSeed(databaseServer, seed, terms).then(
    (result) => {
      if (!isEnding) process.send?.(result)
    },
    (error: unknown) => {
      if (isEnding) return
      console.error(error)
      void databaseServer.stop().finally(() => process.exit(1))
    },
  )
})
process.send?.('ready')
