import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startEmbeddedPostgres } from './embedded.ts'
import { migrate } from './migrate.ts'
import { openDatabase, type Database } from './pool.ts'
import { prepareDatabase } from '../../../testing/prepared-database.ts'

/**
 * Tests of `custody upgrade --check` against a real database, and of the refused start on a
 * database that a newer version has migrated.
 */
const home = mkdtempSync(join(tmpdir(), 'custody-upgrade-check-'))
const FILES = readdirSync(join(import.meta.dirname, './migrations')).sort()
const NEWEST = FILES.at(-1) as string
let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>
let database: Database

before(async () => {
  await prepareDatabase(home)
  postgres = await startEmbeddedPostgres(home)
  database = openDatabase(postgres.adminUrl)
})
after(async () => {
  await database.close()
  await postgres.stop()
  rmSync(home, { recursive: true, force: true })
})

function check(
  url: string | null,
  ...args: (string | NodeJS.ProcessEnv)[]
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const words = args.filter((each) => typeof each === 'string')
  const more = args.filter((each) => typeof each !== 'string')
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../../bin/custody.mjs'), 'upgrade', ...words],
    {
      env: Object.assign(
        { ...process.env, CUSTODY_HOME: join(home, 'none'), DATABASE_URL: url ?? '' },
        ...more,
      ),
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text
    })
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, ...said })))
}
const appliedMigrations = async (): Promise<string[]> =>
  (await database.query<{ name: string }>('select name from migrations order by name')).map(
    ({ name }) => name,
  )

test('reports pending migrations, running processes and newer versions, and changes nothing', async () => {
  const done = await check(postgres.adminUrl, '--check')
  assert.equal(done.status, 0, done.stderr)
  assert.match(
    done.stdout,
    new RegExp(
      `^custody \\S+ has ${FILES.length} migrations; the database has ${FILES.length}\\nnothing would be applied\\n$`,
    ),
  )

  await database.query('delete from migrations where name = $1', [NEWEST])
  await database.query(
    `insert into processes (id, role, host, started_at, seen_at)
        values ($1, 'worker', 'host-1', $2, $2)`,
    [randomUUID(), new Date()],
  )
  const before = await appliedMigrations()
  const pending = await check(postgres.adminUrl, '--check', '--json')
  assert.equal(pending.status, 0, pending.stderr)
  const { version, ...rest } = JSON.parse(pending.stdout) as Record<string, unknown>
  assert.match(version as string, /^\d+\.\d+\.\d+$/)
  assert.deepEqual(rest, {
    possible: true,
    pending: [NEWEST],
    beyond: [],
    running: ['worker on host-1'],
  })
  assert.deepEqual(await appliedMigrations(), before)
  await database.query('insert into migrations (name) values ($1)', [NEWEST])

  await database.query(`insert into migrations (name) values ('999_later.sql')`)
  const later = await check(postgres.adminUrl, '--check')
  assert.equal(later.status, 1)
  assert.match(
    later.stdout,
    /^NOT possible: the database was changed by a newer version \(999_later\.sql\): start that version, or restore a backup from before$/m,
  )
  // The start itself is refused before it changes anything.
  await database.query('delete from migrations where name = $1', [NEWEST])
  const tables = () =>
    database.query(
      `select relname, relfilenode from pg_class where relnamespace = 'public'::regnamespace
          order by relname`,
    )
  const was = await tables()
  await assert.rejects(
    migrate(database),
    /the database was changed by a newer version \(999_later\.sql\)/,
  )
  assert.deepEqual([await tables(), (await appliedMigrations()).includes(NEWEST)], [was, false])
})

test('--apply migrates as the owner and grants the platform’s role its rights, only while nothing runs', async () => {
  await database.query('create database applied owner custody_owner')
  const on = (url: string) => url.replace(/\/[^/?]*(\?|$)/, '/applied$1')
  const apply = (ownerUrl: string) =>
    check(on(postgres.url), '--apply', '--json', { DATABASE_MIGRATION_URL: ownerUrl })
  const first = await apply(on(postgres.ownerUrl))
  assert.equal(first.status, 0, first.stderr)
  const { applied, excess } = JSON.parse(first.stdout) as { applied: string[]; excess: null }
  assert.deepEqual([applied.slice(0, FILES.length), excess], [FILES, null])
  const again = await apply(on(postgres.ownerUrl))
  assert.deepEqual(JSON.parse(again.stdout), { applied: [], excess: null })

  const owner = openDatabase(on(postgres.ownerUrl), { max: 1 })
  try {
    await owner.query('delete from migrations where name = $1', [NEWEST])
    await owner.query(
      `insert into processes (id, role, host, started_at, seen_at)
        values ($1, 'api', 'host-2', $2, $2)`,
      [randomUUID(), new Date()],
    )
  } finally {
    await owner.close()
  }
  const busy = await apply(on(postgres.ownerUrl))
  assert.equal(busy.status, 1)
  assert.match(busy.stderr, /api on host-2 is running: stop every process of the platform/)
  const without = await check(on(postgres.url), '--apply')
  assert.match(without.stderr, /DATABASE_MIGRATION_URL|is running/)
  const elsewhere = await apply(postgres.ownerUrl)
  assert.match(elsewhere.stderr, /DATABASE_MIGRATION_URL: leads to another database/)
  const both = await check(on(postgres.url), '--apply', '--check')
  assert.match(both.stderr, /either --check or --apply is required/)
})

test('reports all migrations for an empty database, and an error without database or --check', async () => {
  await database.query('create database empty')
  const empty = await check(
    postgres.adminUrl.replace(/\/[^/?]*(\?|$)/, '/empty$1'),
    '--check',
    '--json',
  )
  assert.equal(empty.status, 0, empty.stderr)
  const { pending, running } = JSON.parse(empty.stdout) as {
    pending: string[]
    running: string[]
  }
  assert.deepEqual([pending, running], [FILES, []])
  const none = await check(null, '--check')
  assert.equal(none.status, 1)
  assert.match(
    none.stderr,
    /^custody: .*none contains no database: set CUSTODY_HOME, or DATABASE_URL\n$/,
  )
  const bare = await check(postgres.adminUrl)
  assert.deepEqual(
    [bare.status, /either --check or --apply is required/.test(bare.stderr)],
    [1, true],
    bare.stderr,
  )
})
