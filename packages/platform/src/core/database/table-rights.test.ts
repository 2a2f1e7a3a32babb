import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { migrateDatabase } from '../../server/app/migrate-database.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { asAdmin, createTestDatabase } from '../../../testing/test-database.ts'
import { APP, OWNER } from './embedded-roles.ts'
import { migrate } from './migrate.ts'
import { openDatabase, type Queryable } from './pool.ts'
import { excessOf, roleFacts, TABLE_RIGHTS } from './table-rights.ts'

/**
 * Tests of the rights of the platform's processes: of each table in the catalogue, and of what a
 * superuser or an owner could do to the server, its files or the evidence.
 */
const database = useDatabase()
const FORBIDDEN = '42501'

/** Returns whether the role may run a statement, which changes nothing in any case. */
async function may(tx: Queryable, statement: string): Promise<boolean> {
  await tx.query('savepoint attempt')
  try {
    await tx.query(statement)
    return true
  } catch (error) {
    if ((error as { code?: string }).code !== FORBIDDEN) throw error
    return false
  } finally {
    await tx.query('rollback to savepoint attempt')
  }
}

test('every table of the schema declares what the platform’s processes may do with its rows', async () => {
  const tables = await database.get().query<{ name: string; owner: string; plain: string }>(
    `select c.relname "name", pg_get_userbyid(c.relowner)::text "owner",
       (select a.attname from pg_attribute a where a.attrelid = c.oid and a.attnum > 0
         and not a.attisdropped and a.attidentity = '' and a.attgenerated = '' order by a.attnum
         limit 1) plain
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
     order by 1`,
  )
  assert.deepEqual(
    tables.map(({ name }) => name),
    Object.keys(TABLE_RIGHTS).sort(),
  )
  assert.ok(tables.length > 80, `${tables.length} tables`)
  const observed: Record<string, string[]> = {}
  await database.get().transaction(async (tx) => {
    for (const { name, owner, plain } of tables) {
      assert.equal(owner, OWNER, name)
      const attempts: Record<string, string> = {
        select: `select 1 from ${name} limit 1`,
        insert: `insert into ${name} (${plain}) select ${plain} from ${name} where false`,
        update: `update ${name} set ${plain} = ${plain} where false`,
        delete: `delete from ${name} where false`,
        truncate: `truncate ${name}`,
        'add column': `alter table ${name} add column more integer`,
        'disable triggers': `alter table ${name} disable trigger user`,
        'add trigger': `create trigger t before insert on ${name} for each row execute function only_added()`,
        drop: `drop table ${name} cascade`,
      }
      observed[name] = []
      for (const [right, statement] of Object.entries(attempts))
        if (await may(tx, statement)) observed[name].push(right)
    }
  })
  const expected = {
    read: ['select'],
    add: ['select', 'insert'],
    replace: ['select', 'insert', 'delete'],
    update: ['select', 'insert', 'update'],
    all: ['select', 'insert', 'update', 'delete'],
  }
  assert.deepEqual(
    observed,
    Object.fromEntries(tables.map(({ name }) => [name, expected[TABLE_RIGHTS[name] ?? 'read']])),
  )
})

test('evidence is only added: the audit log, the ledger, published reserves and each kept trail', async () => {
  const kept = await database
    .get()
    .query<{ name: string }>(
      `select tgrelid::regclass::text "name" from pg_trigger where tgfoid = 'only_added'::regproc`,
    )
  const names = [...kept.map(({ name }) => name), 'ledger_entries', 'ledger_postings']
  assert.ok(names.includes('audit_log') && names.includes('reserve_snapshots'), names.join(', '))
  for (const name of names) assert.equal(TABLE_RIGHTS[name], 'add', name)
})

test('the platform’s role can change neither the schema nor the server, and cannot become another role', async () => {
  const { get } = database
  await get().transaction(async (tx) => {
    for (const statement of [
      'create table made (id integer)',
      'create schema made',
      'create role made',
      `create function pg_temp.made() returns void language c as 'libc', 'abort'`,
      `create function made() returns integer language sql as 'select 1'`,
      'create or replace view made as select 1',
      `copy (select 1) to program 'id'`,
      `copy (select 1) to '/tmp/custody-copied'`,
      `select pg_read_file('/etc/hostname')`,
      `select pg_ls_dir('.')`,
      `select lo_import('/etc/hostname')`,
      'set local session_replication_role = replica',
      'select pg_reload_conf()',
      `alter role ${APP} superuser`,
      `alter role ${OWNER} password 'x'`,
      `set local role ${OWNER}`,
      'set local session authorization custody',
      'drop function ledger_post(uuid, text, text, jsonb, boolean)',
      `select setval('ledger_entries_id_seq', 1)`,
    ])
      assert.equal(await may(tx, statement), false, statement)
  })
  // These do not run in a transaction.
  for (const statement of ['create database made', 'alter system set work_mem = 1'])
    await assert.rejects(get().query(statement), { code: FORBIDDEN }, statement)
  assert.deepEqual(
    await get().query(
      `select proname from pg_proc where pronamespace = 'public'::regnamespace and prosecdef`,
    ),
    [],
    'no function runs with the rights of its owner',
  )
  assert.deepEqual(
    await get().one(
      `select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls any
       from pg_roles where rolname = current_user`,
    ),
    { any: false },
  )
})

test('rights that were changed by hand are restored by the next migration, and only if they differ', async () => {
  const created = await createTestDatabase()
  const [owner, admin] = [created.ownerUrl, created.adminUrl].map((url) =>
    openDatabase(url, { max: 1 }),
  ) as [ReturnType<typeof openDatabase>, ReturnType<typeof openDatabase>]
  try {
    assert.deepEqual(await migrate(owner, APP), [])
    await admin.query(`grant update, truncate on audit_log to ${APP}`)
    await admin.query(`revoke select on wallets from ${APP}`)
    await admin.query('create table foreign_table (id integer)')
    await admin.query(`grant all on foreign_table to ${APP}`)
    assert.deepEqual(await migrate(owner, APP), ['audit_log', 'wallets'])
    assert.deepEqual(await migrate(owner, APP), [])
  } finally {
    await Promise.all([owner.close(), admin.close()])
    await created.remove()
  }
})

test('an installation with a single database role works as before, and its role is reported', async () => {
  const created = await createTestDatabase()
  const settings = {
    network: 'local' as const,
    databaseUrl: created.ownerUrl,
    databasePooled: false,
  }
  const start = async (databaseUrl: string, ownerUrl: string | null) => {
    const app = openDatabase(databaseUrl, { max: 1 })
    return migrateDatabase(
      { settings, runtime: { openDatabase }, databaseUrl, ownerUrl },
      app,
    ).finally(() => app.close())
  }
  const admin = openDatabase(created.adminUrl, { max: 1 })
  try {
    const count = Object.keys(TABLE_RIGHTS).length
    assert.deepEqual(await start(created.ownerUrl, null), {
      applied: [],
      excess: `the role ${OWNER} owns ${count} tables`,
    })
    assert.deepEqual(await start(created.adminUrl, null), {
      applied: [],
      excess: 'the role custody is a superuser',
    })
    assert.deepEqual(await start(created.url, created.ownerUrl), { applied: [], excess: null })
    // The same role in both settings must not lose its own rights.
    assert.deepEqual((await start(created.ownerUrl, created.ownerUrl)).applied, [])

    await admin.query('grant delete on ledger_postings to public')
    assert.equal(
      (await start(created.url, created.ownerUrl)).excess,
      `the role ${APP} has more rights than it needs on ledger_postings`,
    )

    // Another role gets its rights from the owner at the next start.
    const role = `app_${randomUUID().slice(0, 8)}`
    const password = randomUUID()
    await admin.query(`create role ${role} login password '${password}'`)
    const other = created.url.replace(APP, role)
    await assert.rejects(start(other, null), /^Error: DATABASE_MIGRATION_URL: is required/)
    assert.equal((await start(other, created.ownerUrl)).applied.length > count, true)
    assert.deepEqual((await start(other, null)).applied, [])

    // A pending migration needs the owner.
    await admin.query(`delete from migrations where name = (select max(name) from migrations)`)
    await assert.rejects(
      start(created.url, null),
      /^Error: DATABASE_MIGRATION_URL: is required for this start.*docs\/production\/database\.md/,
    )
    await assert.rejects(
      start(created.url, asAdmin(created.url).replace(/\/test_\w+/, '/postgres')),
      /^Error: DATABASE_MIGRATION_URL: leads to another database than DATABASE_URL/,
    )
    await assert.rejects(
      start(created.url, other),
      /^Error: DATABASE_MIGRATION_URL: this user may not change the tables/,
    )
    await admin.query(`drop owned by ${role}`)
    await admin.query(`drop role ${role}`)
  } finally {
    await admin.close()
    await created.remove()
  }
})

test('describes what a role can do that it need not do', async () => {
  assert.equal(excessOf(await roleFacts(database.get())), null)
  const facts = { role: 'r', superuser: false, owned: 0, beyond: [] }
  assert.equal(excessOf({ ...facts, superuser: true, owned: 3 }), 'the role r is a superuser')
  assert.equal(excessOf({ ...facts, owned: 3 }), 'the role r owns 3 tables')
})
