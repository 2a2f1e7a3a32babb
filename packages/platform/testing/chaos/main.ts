// Command line of the chaos runs (docs/chaos.md):
// - `npm run chaos -- --seed S --transfers N --seconds-between-kills X`: processes are killed
// - `npm run chaos -- disk|clock|descriptors|fork|database`: a single kind of fault
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { clockJumps, fakeTime, movedBy } from './clock.ts'
import { Cluster, TROUBLES, whyNoCluster } from './cluster.ts'
import { primaryFails } from './database.ts'
import { descriptorsGone } from './descriptors.ts'
import { diskFull, smallDisk } from './disk.ts'
import { forked } from './fork.ts'
import { Installation } from './installation.ts'
import { killed } from './kills.ts'
import { ChaosRun } from './chaos-run.ts'

const USAGE = `Usage: npm run chaos -- [kills|disk|clock|descriptors|fork|database] [--seed S] [--transfers N] [--seconds-between-kills X] [--rounds R] [--per-second P]
         [--assets BTC,ETH,XRP,SOL] [--storm-seconds-max M] [--keep]`

function options() {
  try {
    return parseArgs({
      options: {
        seed: { type: 'string', default: '1' },
        transfers: { type: 'string', default: '1000' },
        'seconds-between-kills': { type: 'string', default: '1' },
        rounds: { type: 'string' },
        'per-second': { type: 'string' },
        assets: { type: 'string' },
        'storm-seconds-max': { type: 'string', default: '1200' },
        keep: { type: 'boolean', default: false },
      },
      allowPositionals: true,
    })
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`)
    return process.exit(2)
  }
}

const {
  values: cliOptions,
  positionals: [what = 'kills'],
} = options()
/**
 * If only the database fails, the cheapest asset is sufficient, at a rate that lasts for the whole
 * run.
 */
const values = {
  'per-second': what === 'database' ? '4' : '10',
  // The local chains of XRP and SOL have no forks.
  assets: { database: 'SOL', fork: 'BTC,ETH,TRX,ADA' }[what] ?? 'BTC,ETH,XRP,SOL',
  ...cliOptions,
}

function number(
  name:
    | 'seed'
    | 'transfers'
    | 'seconds-between-kills'
    | 'rounds'
    | 'per-second'
    | 'storm-seconds-max',
): number {
  const text = values[name] ?? ''
  if (/^\d{1,9}(\.\d{1,3})?$/.test(text)) return Number(text)
  console.error(`--${name}: "${text}" is not a number.\n${USAGE}`)
  return process.exit(2)
}

const folder = mkdtempSync(join(tmpdir(), 'custody-chaos-'))
const home = join(folder, 'home')
const say = (line: string) => console.log(line)
const assets = values.assets.split(',')
let installation = new Installation(home)
let clean = (): void => undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    installation.end()
    clean()
    process.exit(130)
  })

const STORIES: Record<string, () => Promise<string[] | null>> = {
  kills: () =>
    killed(installation, {
      seed: number('seed'),
      transfers: number('transfers'),
      assets,
      perSecond: number('per-second'),
      secondsBetweenKills: number('seconds-between-kills'),
      rounds: values.rounds === undefined ? null : number('rounds'),
      stormSecondsMax: number('storm-seconds-max'),
      say,
    }),
  async disk() {
    const unmount = smallDisk(home)
    if (unmount === null) return skipped('this user may not mount a small file system')
    clean = unmount
    return diskFull(new ChaosRun(installation, assets, number('seed'), say))
  },
  async clock() {
    const library = fakeTime()
    if (library === null)
      return skipped('libfaketime is not installed (Debian: apt-get install faketime)')
    const file = join(folder, 'clock')
    const env = movedBy(library, file)
    installation = new Installation(home, () => env)
    return clockJumps(new ChaosRun(installation, assets, number('seed'), say), file)
  },
  async database() {
    const why = whyNoCluster()
    if (why !== null) return skipped(why)
    const cluster = new Cluster(join(folder, 'hosts'))
    process.once('exit', () => cluster.destroy())
    installation = new Installation(home, () => ({ DATABASE_URL: cluster.url }))
    try {
      await cluster.start()
      return await primaryFails({
        cluster,
        run: new ChaosRun(installation, assets, number('seed'), say),
        seed: number('seed'),
        transfers: number('transfers'),
        perSecond: number('per-second'),
        troubles: Array.from(
          { length: values.rounds === undefined ? 1 : number('rounds') },
          () => TROUBLES,
        ).flat(),
      })
    } finally {
      await installation.stop()
      await cluster.remove()
    }
  },
  fork: () => forked(new ChaosRun(installation, assets, number('seed'), say)),
  descriptors: () => descriptorsGone(new ChaosRun(installation, assets, number('seed'), say)),
}

function skipped(why: string): null {
  console.log(`skipped: ${why}`)
  return null
}

const check = Object.hasOwn(STORIES, what) ? STORIES[what] : undefined
if (!check) {
  console.error(`"${what}" is not a story.\n${USAGE}`)
  process.exit(2)
}
let problems: string[] | null
try {
  problems = await check()
} catch (error) {
  problems = [String((error as Error).stack)]
} finally {
  await installation.stop()
  installation.end()
}
clean()
if (problems !== null && problems.length > 0) {
  console.error(`FAILED:\n${problems.join('\n')}\n  its home and log: ${folder}`)
  process.exit(1)
}
if (problems !== null) console.log('all held')
if (!values.keep) rmSync(folder, { recursive: true, force: true })
process.exit(0)
