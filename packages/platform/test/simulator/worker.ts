// A process that plays the seeds that it is given (jobs.ts).
import { SimulatedServer } from './setup-mode.ts'
import { playSeed, type Terms } from './play-seed.ts'

const terms = JSON.parse(process.argv[2] as string) as Terms
const ground = new SimulatedServer()
let isEnding = false
async function end(): Promise<void> {
  if (isEnding) return
  isEnding = true
  await ground.stop()
  process.exit(0)
}
// However the process ends that gave the seeds.
process.once('disconnect', () => void end())
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end())
if (!terms.isHostile) await ground.start()
process.on('message', (seed: number | 'end') => {
  if (seed === 'end') return void end()
  playSeed(ground, seed, terms).then(
    (told) => {
      if (!isEnding) process.send?.(told)
    },
    (error: unknown) => {
      if (isEnding) return
      console.error(error)
      void ground.stop().finally(() => process.exit(1))
    },
  )
})
process.send?.('ready')
