import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, beforeEach, test } from 'node:test'
import type { Database } from '../../core/database/pool.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { truncateTables } from '../../../testing/truncate-tables.ts'
import { verifyStoredLogs } from '../../server/operator/console.ts'
import { OPERATOR, writeAudit } from './audit-log.ts'
import { verifyAuditLogs, type AuditHead } from './verify-audit-logs.ts'

/** Tests that any change of the stored audit logs is detected and named. */
const database = useDatabase()
const [acme, bravo] = [randomUUID(), randomUUID()]
const ENTRIES = 5

/** Ends a transaction whose changes must not stay. */
class Undone extends Error {}

before(() => database.started)
beforeEach(async () => {
  await truncateTables(database.get(), 'workspaces')
  for (const [id, name] of [
    [acme, 'acme'],
    [bravo, 'bravo'],
  ] as const) {
    await database.get().query('insert into workspaces (id, name) values ($1, $2)', [id, name])
    for (let at = 1; at <= ENTRIES; at++) await write(id, at)
  }
  await database.get().query(`insert into workspaces (name) values ('without-entries')`)
})

const write = (workspace: string, at: number) =>
  database
    .get()
    .transaction((tx) =>
      writeAudit(tx, workspace, OPERATOR, { action: 'test.done', details: { at } }),
    )

/** Runs a statement as an attacker who controls the database server: without triggers. */
const tamper = async (...statements: string[]) => {
  await database.admin().transaction(async (tx) => {
    await tx.query('set local session_replication_role = replica')
    for (const statement of statements) await tx.query(statement)
  })
}
const verify = (earlier?: AuditHead[]) => verifyAuditLogs(database.get(), earlier)

test('untouched logs of all workspaces verify, also against an earlier verification', async () => {
  const first = await verify()
  assert.deepEqual(
    [first.entries, first.broken, first.heads.map(({ name, seq }) => [name, seq])],
    [
      2 * ENTRIES,
      [],
      [
        ['acme', ENTRIES],
        ['bravo', ENTRIES],
        ['without-entries', 0],
      ],
    ],
  )
  await write(acme, 6)
  const second = await verify(first.heads)
  assert.deepEqual([second.entries, second.broken], [2 * ENTRIES + 1, []])
})

test('each way of changing a log is detected, and the first wrong entry is named', async () => {
  const row = `workspace_id = '${acme}' and seq =`
  const cases: [string, string[], number, RegExp][] = [
    ['details', [`update audit_log set details = '{}' where ${row} 3`], 3, /was changed/],
    [
      'time',
      [`update audit_log set at = at + interval '1 millisecond' where ${row} 1`],
      1,
      /was changed/,
    ],
    ['actor', [`update audit_log set actor_name = 'eve' where ${row} 5`], 5, /was changed/],
    ['own hash', [`update audit_log set hash = sha256('x') where ${row} 2`], 2, /was changed/],
    ['link', [`update audit_log set prev_hash = sha256('x') where ${row} 2`], 2, /not chained/],
    ['first entry', [`delete from audit_log where ${row} 1`], 1, /has number 2, but 1/],
    ['middle entry', [`delete from audit_log where ${row} 3`], 3, /has number 4, but 3/],
    ['last entry', [`delete from audit_log where ${row} 5`], 5, /should end with number 5/],
    ['all entries', [`delete from audit_log where workspace_id = '${acme}'`], 1, /should end with/],
    ['end', [`delete from audit_heads where workspace_id = '${acme}'`], 6, /should end with/],
    ['hash of the end', [`update audit_heads set hash = sha256('x')`], 6, /should end with/],
    [
      'two entries exchanged',
      [
        `update audit_log set seq = 99 where ${row} 2`,
        `update audit_log set seq = 2 where ${row} 3`,
        `update audit_log set seq = 3 where ${row} 99`,
      ],
      2,
      /not chained/,
    ],
    [
      'entry of another workspace',
      [
        `delete from audit_log where ${row} 4`,
        `update audit_log set workspace_id = '${acme}' where workspace_id = '${bravo}' and seq = 4`,
      ],
      4,
      /not chained/,
    ],
    [
      'added entry',
      [
        `insert into audit_log select workspace_id, 6, at, actor_type, actor_id, actor_name,
          session_id, ip, action, object, details, hash, sha256('x') from audit_log where ${row} 5`,
      ],
      6,
      /was changed/,
    ],
  ]
  for (const [what, statements, seq, reason] of cases) {
    await database
      .admin()
      .transaction(async (tx) => {
        await tx.query('set local session_replication_role = replica')
        for (const statement of statements) await tx.query(statement)
        const { broken } = await verifyAuditLogs(tx)
        const found = broken.find(({ workspace }) => workspace === 'acme')
        assert.equal(found?.seq, seq, `${what}: ${JSON.stringify(broken)}`)
        assert.match(found?.reason ?? '', reason, what)
        throw new Undone()
      })
      .catch((error: unknown) => {
        if (!(error instanceof Undone)) throw error
      })
  }
  assert.deepEqual((await verify()).broken, [])
})

test('a shortened or rewritten log is detected by an earlier verification', async () => {
  const { heads } = await verify()
  await tamper(
    `delete from audit_log where workspace_id = '${acme}' and seq > 3`,
    `update audit_heads set seq = 3, hash = (select hash from audit_log
       where workspace_id = '${acme}' and seq = 3) where workspace_id = '${acme}'`,
  )
  assert.deepEqual((await verify()).broken, [], 'the rest is a correct chain')
  assert.deepEqual((await verify(heads)).broken, [
    { workspace: 'acme', seq: 4, reason: 'was removed: the log ended with number 5 earlier' },
  ])
  // The attacker continues the shortened log past its former end.
  for (const at of [4, 5, 6]) await write(acme, at + 100)
  assert.deepEqual((await verify()).broken, [])
  assert.deepEqual((await verify(heads)).broken, [
    { workspace: 'acme', seq: 5, reason: 'has another hash than at the earlier verification' },
  ])
  const gone = { workspace: randomUUID(), name: 'gone', seq: 2, hash: 'ab'.repeat(32) }
  assert.deepEqual((await verify([gone])).broken, [
    { workspace: 'gone', seq: 1, reason: 'the workspace was removed' },
  ])
})

test('entries that are written while the logs are verified are no fault', async () => {
  let writing = true
  const writes = (async () => {
    for (let at = 0; writing; at++) await write(at % 2 ? acme : bravo, at)
  })()
  try {
    for (let round = 0; round < 20; round++) assert.deepEqual((await verify()).broken, [])
  } finally {
    writing = false
    await writes
  }
})

test('the operator’s command refuses ends that are not those of an earlier verification', async () => {
  const services = { database: database.get() as Database }
  assert.deepEqual(await verifyStoredLogs(services, {}), { ...(await verify()) })
  for (const heads of [null, 'x', [{ workspace: acme }], [{ workspace: 'acme', seq: 1, hash: '' }]])
    await assert.rejects(verifyStoredLogs(services, { heads }), /^OperatorError: --heads: must be/)
})
