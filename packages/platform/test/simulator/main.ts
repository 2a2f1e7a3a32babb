// npm run simulate -- --seed S             one simulation
// npm run simulate -- --seed S --seeds N   N of them, from S on
// npm run simulate -- --seed S --draws F   the draws of a file in place of the seed's
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { shrink } from './shrink.ts'
import { simulate, type Report } from './simulate.ts'
import { Ground } from './world.ts'

const USAGE = 'Usage: npm run simulate -- [--seed S] [--seeds N] [--draws FILE] [--shrink SECONDS]'

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  console.error(`--${name}: "${text}" is not a whole number. ${USAGE}`)
  process.exit(2)
}

function options() {
  try {
    return parseArgs({ options: {
      seed: { type: 'string', default: '1' }, seeds: { type: 'string', default: '1' }, draws: { type: 'string' },
      shrink: { type: 'string', default: '0' },
    } }).values
  } catch (error) {
    console.error(`${(error as Error).message}. ${USAGE}`)
    return process.exit(2)
  }
}

const values = options()
const first = wholeNumber('seed', values.seed)
const count = wholeNumber('seeds', values.seeds)
const shrinkMs = wholeNumber('shrink', values.shrink) * 1000
const given = values.draws === undefined ? null : JSON.parse(readFileSync(values.draws, 'utf8')) as number[]

/** Everything that is known of a failure, where it can be read at leisure. */
function keep(report: Report): string {
  const folder = mkdtempSync(join(tmpdir(), `custody-seed-${report.seed}-`))
  writeFileSync(join(folder, 'draws.json'), JSON.stringify(report.draws))
  writeFileSync(join(folder, 'trace'), report.trace.join('\n'))
  writeFileSync(join(folder, 'log'), report.lines.join('\n'))
  return folder
}

const ground = new Ground()
const faults = new Map<string, number>()
let transfers = 0
let steps = 0
const failed: number[] = []
process.once('SIGINT', () => void ground.stop().finally(() => process.exit(130)))
process.once('SIGTERM', () => void ground.stop().finally(() => process.exit(143)))
try {
  await ground.start()
  for (let seed = first; seed < first + count; seed++) {
    const began = performance.now()
    let report = await simulate(ground, seed, given)
    const tookMs = performance.now() - began
    transfers += report.transfers
    steps += report.steps
    for (const [kind, times] of report.faults) faults.set(kind, (faults.get(kind) ?? 0) + times)
    const hash = createHash('sha256').update(report.trace.join('\n')).digest('hex').slice(0, 8)
    console.log(`seed ${seed}: ${report.steps} steps (${hash}), ${JSON.stringify(report.ends)}, ${tookMs.toFixed(0)} ms`)
    if (report.failure === null) continue
    failed.push(seed)
    if (shrinkMs > 0) report = await shrink(ground, report, shrinkMs)
    console.log(`FAILED: ${report.failure}\n  its draws, what happened and the log: ${keep(report)}\n  again: npm run simulate -- --seed ${seed}`)
  }
} finally {
  await ground.stop()
}
for (const [kind, times] of [...faults].sort(([, a], [, b]) => b - a)) console.log(`${String(times).padStart(6)}  ${kind}`)
const injected = [...faults.values()].reduce((sum, times) => sum + times, 0)
const held = failed.length === 0 ? 'all held' : `FAILED: ${failed.join(', ')}`
console.log(`${count} seeds, ${transfers} transfers, ${steps} steps, ${injected} faults injected: ${held}`)
process.exitCode = failed.length > 0 ? 1 : 0
