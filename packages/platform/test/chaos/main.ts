// npm run chaos -- --seed S --transfers N --seconds-between-kills X    docs/chaos.md
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Installation } from './installation.ts'
import { killed } from './kills.ts'

const USAGE = `Usage: npm run chaos -- [--seed S] [--transfers N] [--seconds-between-kills X] [--rounds R] [--per-second P]
         [--assets BTC,ETH,XRP,SOL] [--storm-seconds-max M] [--keep]`

function options() {
  try {
    return parseArgs({ options: {
      'seed': { type: 'string', default: '1' }, 'transfers': { type: 'string', default: '1000' },
      'seconds-between-kills': { type: 'string', default: '1' }, 'rounds': { type: 'string' }, 'per-second': { type: 'string', default: '10' },
      'assets': { type: 'string', default: 'BTC,ETH,XRP,SOL' }, 'storm-seconds-max': { type: 'string', default: '1200' },
      'keep': { type: 'boolean', default: false },
    }, allowPositionals: true })
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`)
    return process.exit(2)
  }
}

const { values } = options()

function number(name: 'seed' | 'transfers' | 'seconds-between-kills' | 'rounds' | 'per-second' | 'storm-seconds-max'): number {
  const text = values[name] ?? ''
  if (/^\d{1,9}(\.\d{1,3})?$/.test(text)) return Number(text)
  console.error(`--${name}: "${text}" is not a number.\n${USAGE}`)
  return process.exit(2)
}

const folder = mkdtempSync(join(tmpdir(), 'custody-chaos-'))
const installation = new Installation(join(folder, 'home'))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => {
  installation.end()
  process.exit(130)
})
let problems: string[]
try {
  problems = await killed(installation, {
    seed: number('seed'), transfers: number('transfers'), assets: values.assets.split(','), perSecond: number('per-second'),
    secondsBetweenKills: number('seconds-between-kills'), rounds: values.rounds === undefined ? null : number('rounds'),
    stormSecondsMax: number('storm-seconds-max'), say: (line) => console.log(line),
  })
} catch (error) {
  problems = [String((error as Error).stack)]
} finally {
  await installation.stop()
  installation.end()
}
if (problems.length > 0) {
  console.error(`FAILED:\n${problems.join('\n')}\n  its home and log: ${folder}`)
  process.exit(1)
}
console.log('all held')
if (!values.keep) rmSync(folder, { recursive: true, force: true })
process.exit(0)
