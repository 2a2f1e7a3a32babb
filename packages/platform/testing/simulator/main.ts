// Command line of the simulator:
// - `npm run simulate -- --seed S`: one simulation
// - `npm run simulate -- --seed S --seeds N --jobs J`: N simulations, from seed S on, J at a time
// - `npm run simulate -- --seed S --draws F`: uses the draws of a file in place of the seed's
// - `npm run simulate -- --hostile --seed S --seeds N`: a hostile platform with three nodes
// - `npm run simulate -- --byzantine --seed S --seeds N`: an honest platform with a hostile third node
import { existsSync, readFileSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { ATTACKS, type Attack } from './byzantine/attacks.ts'
import { inProcesses, inThisProcess } from './jobs.ts'
import type { SeedOptions } from './play-seed.ts'

const USAGE = `Usage: npm run simulate -- [--seed S] [--seeds N] [--jobs J] [--hostile | --byzantine [--attacks LIST]] [--brief] [--shrink SECONDS] [--draws FILE]
  --seed S      the first seed (1)
  --seeds N     how many seeds are played, from S on (1)
  --jobs J      how many processes play them (1)
  --hostile     a platform that asks three signer nodes for whatever chance makes up, in place of an honest one in a storm
  --byzantine   an honest platform with two honest signer nodes and a hostile one, on a simulated clock
  --attacks L   with --byzantine: kinds of attacks, separated by commas, or "none" for an honest third node
                (all: ${ATTACKS.join(',')})
  --brief       tell of seeds that fail, every hundredth, and of the sums
  --shrink T    where a seed fails, look T seconds for a shorter story that fails too (0)
  --draws FILE  the draws of a failure that was kept, in place of the seed's`

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  console.error(`--${name}: "${text}" is not a whole number.\n${USAGE}`)
  process.exit(2)
}

/** Reads the kinds of attacks; null: the third node is honest. */
function attacksOf(text: string): Attack[] | null {
  if (text === 'none') return null
  return text.split(',').map((name) => {
    const attack = ATTACKS.find((each) => each === name)
    if (attack) return attack
    console.error(`--attacks: "${name}" is not a kind of attack.\n${USAGE}`)
    process.exit(2)
  })
}

function options() {
  try {
    return parseArgs({
      options: {
        seed: { type: 'string', default: '1' },
        seeds: { type: 'string', default: '1' },
        draws: { type: 'string' },
        shrink: { type: 'string', default: '0' },
        jobs: { type: 'string', default: '1' },
        hostile: { type: 'boolean', default: false },
        byzantine: { type: 'boolean', default: false },
        attacks: { type: 'string' },
        brief: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    console.error(`${(error as Error).message}.\n${USAGE}`)
    return process.exit(2)
  }
}

const values = options()
if (values.help) {
  console.log(USAGE)
  process.exit(0)
}
const first = wholeNumber('seed', values.seed)
const count = wholeNumber('seeds', values.seeds)
const jobs = wholeNumber('jobs', values.jobs)
const draws =
  values.draws === undefined ? null : (JSON.parse(readFileSync(values.draws, 'utf8')) as number[])
if (values.hostile && values.byzantine) {
  console.error(`--hostile and --byzantine exclude each other.\n${USAGE}`)
  process.exit(2)
}
const attacks = values.attacks === undefined ? ATTACKS : attacksOf(values.attacks)
const terms: SeedOptions = {
  mode: values.byzantine ? 'byzantine' : values.hostile ? 'hostile' : 'faults',
  attacks,
  shrinkMs: wholeNumber('shrink', values.shrink) * 1000,
  keepIn: tmpdir(),
  draws,
}

/** Folder in memory for a simulation's files, which are temporary and are read again soon. */
const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 1_500_000_000
if (existsSync(MEMORY)) {
  const { bavail, bsize } = statfsSync(MEMORY)
  if (bavail * bsize >= MEMORY_BYTES_MIN * Math.max(1, jobs)) process.env['TMPDIR'] = MEMORY
}

/** Number of seeds after which progress is printed, if passing seeds are not printed. */
const TOLD_EVERY = 100
const began = performance.now()
const faults = new Map<string, number>()
const sums = new Map<string, number>()
const failed: number[] = []
for await (const result of jobs > 1
  ? inProcesses(first, count, jobs, terms)
  : inThisProcess(first, count, terms)) {
  if (!values.brief || !result.isHeld) console.log(result.text)
  for (const [name, value] of Object.entries(result.counts))
    sums.set(name, (sums.get(name) ?? 0) + value)
  for (const [kind, times] of result.faults) faults.set(kind, (faults.get(kind) ?? 0) + times)
  if (!result.isHeld) failed.push(result.seed)
  const played = result.seed - first + 1
  if (values.brief && played % TOLD_EVERY === 0 && played < count) {
    console.log(
      `${played} seeds in ${((performance.now() - began) / 1000).toFixed(0)} s, ${failed.length === 0 ? 'all held' : `${failed.length} failed`}`,
    )
  }
}
for (const [kind, times] of [...faults].sort(([, a], [, b]) => b - a))
  console.log(`${String(times).padStart(6)}  ${kind}`)
const injected = [...faults.values()].reduce((sum, times) => sum + times, 0)
const tookS = ((performance.now() - began) / 1000).toFixed(0)
const held = failed.length === 0 ? 'all held' : `FAILED: ${failed.join(', ')}`
console.log(
  `${count} seeds in ${tookS} s, ${[...sums].map(([name, value]) => `${value} ${name}`).join(', ')}, ${injected} faults injected: ${held}`,
)
// Clients of the simulated services may still wait for a response.
process.exit(failed.length > 0 ? 1 : 0)
