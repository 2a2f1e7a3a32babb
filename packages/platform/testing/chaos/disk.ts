import { spawnSync } from 'node:child_process'
import {
  closeSync,
  cpSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../../src/core/database/pool.ts'
import { asAdmin } from '../test-database.ts'
import type { Installation } from './installation.ts'
import type { ChaosRun } from './chaos-run.ts'

const MIB = 1024 ** 2
const DISK_MIB = 400
const BALLAST = 'ballast'

/**
 * Mounts a small file system for a home directory; returns null if this user may not mount one. The
 * local chains, which are not part of the platform, stay outside.
 */
export function smallDisk(home: string): (() => void) | null {
  mkdirSync(home, { recursive: true })
  if (
    spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m,mode=0700`, 'custody-chaos', home])
      .status !== 0
  )
    return null
  const chains = join(dirname(home), 'devnet')
  mkdirSync(chains, { recursive: true })
  symlinkSync(chains, join(home, 'devnet'))
  return () => {
    for (const name of ['logs', 'postgres.log'])
      if (existsSync(join(home, name)))
        cpSync(join(home, name), join(dirname(home), 'kept', name), { recursive: true })
    spawnSync('umount', ['-l', home])
  }
}

const freeBytes = (home: string): number => {
  const { bavail, bsize } = statfsSync(home)
  return bavail * bsize
}

/** Writes a file until only this number of bytes is free, or none. */
function fill(home: string, leave: number): void {
  const file = openSync(join(home, BALLAST), 'a')
  const piece = Buffer.alloc(MIB)
  try {
    while (freeBytes(home) > leave)
      writeSync(file, piece, 0, Math.max(1, Math.min(MIB, freeBytes(home) - leave)))
    fsyncSync(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    closeSync(file)
  }
}

const empty = (home: string): void => rmSync(join(home, BALLAST), { force: true })

/**
 * Writes to the database directly until it accepts no more data and its server ends, because it
 * cannot write its own log.
 */
async function exhaust(installation: Installation): Promise<boolean> {
  const { database_url: url } = JSON.parse(
    readFileSync(join(installation.home, 'runtime.json'), 'utf8'),
  ) as { database_url: string }
  const database = openDatabase(asAdmin(url), { max: 1, onError: () => undefined })
  const first = installation.pids('PostgreSQL')[0]
  try {
    for (const deadline = Date.now() + 60_000; Date.now() < deadline;) {
      await database
        .query(
          `insert into ballast select repeat(md5(n::text), 100) from generate_series(1, 500) n`,
        )
        .catch(() => undefined)
      await database
        .query(`update ballast set text = text where ctid in (select ctid from ballast limit 50)`)
        .catch(() => undefined)
      if (installation.pids('PostgreSQL')[0] !== first) return true
    }
    return false
  } finally {
    await database.close()
  }
}

async function ask(installation: Installation, statement: string): Promise<void> {
  const { database_url: url } = JSON.parse(
    readFileSync(join(installation.home, 'runtime.json'), 'utf8'),
  ) as { database_url: string }
  const database = openDatabase(asAdmin(url), { max: 1, onError: () => undefined })
  await database.query(statement).finally(() => database.close())
}

/** Fills the disk of the data directory: nearly, then completely. */
export async function diskFull(run: ChaosRun): Promise<string[]> {
  const { installation } = run
  const { home } = installation
  await run.begin()
  run.say(`${(freeBytes(home) / MIB).toFixed(0)} MiB of ${DISK_MIB} are free`)

  run.send(12)
  await run.answered()
  fill(home, 32 * MIB)
  run.say(`filled: ${(freeBytes(home) / MIB).toFixed(0)} MiB are left`)
  await sleep(1500)
  const refused = await run.tried()
  run.expect(
    'a new transfer is refused with 503 UNAVAILABLE, which names the disk',
    refused.status === 503 && refused.code === 'UNAVAILABLE' && refused.message.includes('disk'),
    refused,
  )
  const unready = await installation.readiness()
  run.expect(
    'readiness is not given, and says that it is the disk',
    unready?.status === 'unavailable' && unready.checks['disk'] !== 'ok',
    unready,
  )
  await run.expectSoon(
    'what was accepted before goes on to its end',
    async () => (await run.payments.pending()) === 0,
    90_000,
  )
  empty(home)
  await run.expectSoon(
    'with room again new transfers are taken by themselves',
    async () => (await run.tried()).status === 200,
    10_000,
    () => installation.readiness(),
  )

  await ask(
    installation,
    `create table ballast as select repeat('x', 1000) text from generate_series(1, 200)`,
  )
  run.send(12)
  await sleep(500)
  fill(home, 0)
  run.say(`filled: ${freeBytes(home)} bytes are left`)
  run.expect('PostgreSQL ends, as it cannot write its log', await exhaust(installation))
  run.send(4)
  for (let at = 0; at < 5; at++) {
    const { status, code, message } = await run.tried()
    if (status !== 0)
      run.expect(
        'a new transfer is refused with 503 UNAVAILABLE',
        status === 503 && code === 'UNAVAILABLE',
        { status, code, message },
      )
    await sleep(1000)
  }
  run.expect(
    'the platform itself runs',
    await installation.answers('/livez'),
    installation.lastLines(),
  )
  run.say(`readiness: ${JSON.stringify(await installation.readiness())}`)
  empty(home)
  await run.expectSoon(
    'with room again it is ready, with nobody doing anything',
    () => installation.answers('/readyz?deep'),
    90_000,
    () => installation.readiness(),
  )
  await ask(installation, 'drop table ballast')
  return run.end()
}
