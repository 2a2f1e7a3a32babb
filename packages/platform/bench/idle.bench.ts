import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { interleaved, report } from '../../../testing/figures.ts'
import { embeddedData, startEmbeddedPostgres } from '../src/core/database/embedded.ts'
import { openDatabase } from '../src/core/database/pool.ts'
import { cpuSeconds, memoryMb } from './processes.ts'

/**
 * Measures the load of an idle platform, and the time that `npm start` takes on an existing home
 * directory: `node bench/idle.bench.ts [seconds to measure]`. Nodes and database are counted. The
 * local chains and npm, which a production service does not have, are reported separately.
 */
const WATCHED_S = Number(process.argv[2] ?? 60)
/** A minute after its start, PostgreSQL analyzes the tables that the start has written. */
const SETTLED_S = 100
const STARTS = 3
const root = fileURLToPath(new URL('../../..', import.meta.url))
const home = mkdtempSync(join(tmpdir(), 'custody-idle-'))
const running = new Set<Started>()

interface Started {
  child: ChildProcess
  readyMs: number
}
/**
 * Runs `npm start` on the home directory.
 * @throws Error if it ends before it is ready
 */
async function start(): Promise<Started> {
  const begun = performance.now()
  const child = spawn('npm', ['start'], {
    cwd: root,
    env: { ...process.env, CUSTODY_HOME: home, PORT: '0', CUSTODY_LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      if (/^ready http/m.test((printed += chunk.toString()))) resolve()
    })
    child.once('exit', (code) => reject(new Error(`npm start ended with ${String(code)}`)))
  })
  const started = { child, readyMs: performance.now() - begun }
  running.add(started)
  return started
}

/**
 * npm ends before the processes that it started; the database's lock file shows when these have
 * ended.
 */
async function stop(started: Started): Promise<void> {
  running.delete(started)
  started.child.kill('SIGTERM')
  while (existsSync(join(embeddedData(home), 'postmaster.pid'))) await sleep(20)
}

const walBytes = async (): Promise<number> => {
  const { database_url: url } = JSON.parse(readFileSync(join(home, 'runtime.json'), 'utf8')) as {
    database_url: string
  }
  const database = openDatabase(url, { max: 1 })
  try {
    return Number(
      (await database.one<{ bytes: string }>(`select pg_current_wal_insert_lsn() - '0/0' as bytes`))
        ?.bytes,
    )
  } finally {
    await database.close()
  }
}

/** Processes that a production service does not have; sums exclude them. */
const APART = new Set(['chains', 'npm'])
const sum = (parts: Record<string, number>): number =>
  Object.entries(parts).reduce((all, [name, part]) => (APART.has(name) ? all : all + part), 0)
const describe = (parts: Record<string, number>): string =>
  `${Object.entries(parts)
    .map(([name, part]) => `${name} ${part.toPrecision(3)}`)
    .join(', ')}; chains and npm not counted`

try {
  // The first start creates the home directory.
  await stop(await start())
  const times = await interleaved(STARTS, {
    postgres: async () => {
      const begun = performance.now()
      const postgres = await startEmbeddedPostgres(home)
      const took = performance.now() - begun
      if (postgres.adopted) throw new Error('the server of the start before still ran')
      await postgres.stop()
      return took
    },
    start: async () => {
      const started = await start()
      await stop(started)
      return started.readyMs
    },
  })
  report({
    name: '`npm start` to ready, second start',
    unit: 'ms',
    value: times.start,
    floor: times.postgres,
    target: { atMost: 2 },
    note: 'floor: PostgreSQL alone on the same home',
  })
  const started = await start()
  const pid = started.child.pid as number
  await sleep(SETTLED_S * 1000)
  const before = { cpu: cpuSeconds(pid), wal: await walBytes() }
  await sleep(WATCHED_S * 1000)
  const after = { cpu: cpuSeconds(pid), wal: await walBytes() }
  const percent = Object.fromEntries(
    Object.entries(after.cpu).map(([name, seconds]) => [
      name,
      ((seconds - (before.cpu[name] ?? 0)) / WATCHED_S) * 100,
    ]),
  )
  const memory = memoryMb(pid)
  report({
    name: 'idle: of a processor',
    unit: '%',
    value: sum(percent),
    floor: null,
    target: { atMost: 1 },
    note: describe(percent),
  })
  report({
    name: 'idle: memory',
    unit: 'MB',
    value: sum(memory),
    floor: null,
    target: { atMost: 350 },
    note: describe(memory),
  })
  report({
    name: 'idle: written by PostgreSQL in an hour',
    unit: 'MB',
    value: (((after.wal - before.wal) / WATCHED_S) * 3600) / 2 ** 20,
    floor: null,
    target: { atMost: 1 },
  })
} finally {
  for (const each of running) await stop(each)
  rmSync(home, { recursive: true, force: true })
}
