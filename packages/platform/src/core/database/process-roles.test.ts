import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { after, test } from 'node:test'
import { createTestDatabase } from '../../../testing/test-database.ts'
import { APP, urlForRole } from './embedded-roles.ts'
import { migrate } from './migrate.ts'
import { openDatabase } from './pool.ts'
import {
  API_ROLE,
  excessOf,
  privilegesOf,
  roleFacts,
  SCANNER_ROLE,
  TABLE_RIGHTS,
} from './table-rights.ts'

/**
 * Tests of the roles of processes that only serve the API or only scan: that no code of such a
 * process needs a right that its role lacks, and that the server refuses such a statement.
 */

const SOURCE = resolve(import.meta.dirname, '../..')

/** Modules that a process runs besides the endpoints or the scan: its start, heartbeat and metrics. */
const EVERY_PROCESS = [
  'server/app/binding.ts',
  'server/app/secrets-key.ts',
  'server/app/preflight.ts',
  'server/app/clock.ts',
  'server/app/health/role-health.ts',
  'server/app/health/collect-metrics.ts',
  'server/recovery/compare-records.ts',
  'events/events/publish.ts',
  'events/webhooks/distribute.ts',
]
const ROOTS: Record<string, string[]> = {
  [API_ROLE]: [
    ...EVERY_PROCESS,
    'server/app/endpoints.ts',
    'server/app/panel.ts',
    'server/app/create-application.ts',
  ],
  [SCANNER_ROLE]: [
    ...EVERY_PROCESS,
    // Services that the scan uses through the application.
    'core/ledger/feed.ts',
    'core/signing/keys.ts',
    'custody/addresses/book.ts',
    'custody/aml/aml.ts',
    'custody/assets/find-wallet.ts',
    'custody/auto-forwarding/forwards.ts',
    'custody/gas-tanks/tanks.ts',
    'custody/prices/prices.ts',
    'server/app/kinds.ts',
    'custody/deposits/scanner.ts',
    'custody/deposits/hold-networks.ts',
    'core/engine/endpoints/head-loop.ts',
    'commerce/invoices/mempool.ts',
  ],
}
/**
 * Modules that the modules above import and whose statements these processes do not run: audits and
 * reserves are published by the operator's commands and read here. A scanner adopts only signatures of
 * transactions that the database contains, for which the new rows of other modules are not written.
 */
const OTHER_ROLES = [
  'server/audit/recorded.ts',
  'server/recovery/adopt-all.ts',
  'server/reserves/publish.ts',
]

/** Returns the modules that the roots import, directly or through others, except types. */
function closureOf(roots: readonly string[], except: readonly string[]): Set<string> {
  const pending = roots.map((each) => resolve(SOURCE, each))
  const excluded = new Set(except.map((each) => resolve(SOURCE, each)))
  const modules = new Set<string>()
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (modules.has(file) || excluded.has(file) || !file.startsWith(SOURCE)) continue
    modules.add(file)
    const text = readFileSync(file, 'utf8')
    for (const [, path] of text.matchAll(
      /(?:(?:import|export)\s(?!type\b)[^'";]*?from\s|import\()'(\.[^']+\.ts)'/g,
    ))
      pending.push(resolve(dirname(file), path as string))
  }
  return modules
}

const PRIVILEGE: Record<string, string> = {
  'insert into': 'INSERT',
  update: 'UPDATE',
  'delete from': 'DELETE',
  from: 'SELECT',
  join: 'SELECT',
}

/** Returns `TABLE PRIVILEGE` of each statement in a text. */
function* statements(text: string): Generator<[table: string, privilege: string]> {
  for (const [, verb, table] of text.matchAll(
    /\b(insert into|update|delete from|from|join)\s+(?:only\s+)?([a-z_]+)/gi,
  ))
    if ((table as string) in TABLE_RIGHTS)
      yield [table as string, PRIVILEGE[(verb as string).toLowerCase()] as string]
}

test('reads the statements of the modules that need rights', () => {
  assert.deepEqual(
    [...statements('insert into people (a) select a from sessions join blocks; update utxos set')],
    [
      ['people', 'INSERT'],
      ['sessions', 'SELECT'],
      ['blocks', 'SELECT'],
      ['utxos', 'UPDATE'],
    ],
  )
})

for (const role of [API_ROLE, SCANNER_ROLE])
  test(`no module of a process with the role ${role} needs a right that the role lacks`, () => {
    const modules = closureOf(ROOTS[role] as string[], OTHER_ROLES)
    const missing: string[] = []
    const used = new Set<string>()
    for (const file of modules)
      for (const [table, privilege] of statements(readFileSync(file, 'utf8'))) {
        used.add(table)
        if (!privilegesOf(role, table).includes(privilege))
          missing.push(`${file.slice(SOURCE.length + 1)}: ${privilege} ${table}`)
      }
    assert.deepEqual(missing.sort(), [])
    assert.ok(modules.size > 50 && used.size > 20, `${modules.size} modules, ${used.size} tables`)
  })

const database = await createTestDatabase()
after(() => database.remove())

for (const [role, url] of [
  [API_ROLE, urlForRole(database.url, 'api')],
  [SCANNER_ROLE, urlForRole(database.url, 'scanner')],
] as const)
  test(`the server grants ${role} exactly its rights, and ${APP} those of all processes`, async (t) => {
    const opened = openDatabase(url, { max: 1 })
    t.after(() => opened.close())
    const granted = await opened.query<{ name: string; can: string[] }>(
      `select c.relname "name", array(select p from unnest(array['DELETE', 'INSERT', 'SELECT', 'UPDATE', 'TRUNCATE']) p
         where has_table_privilege(c.oid, p)) can
       from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')`,
    )
    assert.deepEqual(
      Object.fromEntries(granted.map(({ name, can }) => [name, can])),
      Object.fromEntries(Object.keys(TABLE_RIGHTS).map((name) => [name, privilegesOf(role, name)])),
    )
    const facts = await roleFacts(opened)
    assert.equal(facts.role, role)
    assert.equal(excessOf(facts), null)
  })

test('a migration repairs the rights of the optional roles', async (t) => {
  const owner = openDatabase(database.ownerUrl, { max: 1 })
  t.after(() => owner.close())
  await owner.query(`grant insert on people to ${SCANNER_ROLE}`)
  await owner.query(`grant update on blocks to ${API_ROLE}`)
  assert.deepEqual((await migrate(owner, APP)).sort(), ['blocks', 'people'])
  assert.deepEqual(await migrate(owner, APP), [])
})

test('a process of one role uses the embedded database with the role for it', () => {
  const url = `postgresql://${APP}@/custody?host=/tmp/socket`
  assert.deepEqual(
    (['all', 'worker', 'api', 'scanner'] as const).map((role) => urlForRole(url, role)),
    [url, url, url.replace(APP, API_ROLE), url.replace(APP, SCANNER_ROLE)],
  )
})
