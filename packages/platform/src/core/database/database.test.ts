import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { STATE_SCHEMAS } from './state-schemas.ts'
import { applyFunctions } from './functions.ts'
import { migrate } from './migrate.ts'
import { isConnectionError, openDatabase, shortageOfDatabase, type Database } from './pool.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'

const installation = useDatabase({ migrated: false, server: 'own' })
const folder = (name: string) => new URL(`./${name}/`, import.meta.url)
const filesOf = (name: string) =>
  readdirSync(folder(name))
    .sort()
    .map((file) => ({ file, text: readFileSync(new URL(file, folder(name)), 'utf8') }))
const functionsIn = (text: string) =>
  [...text.matchAll(/^create (?:or replace )?function (\w+)/gim)].map((match) => match[1])

/** Creates an empty database for one test. */
async function fresh(t: TestContext, name: string): Promise<Database> {
  await installation.get().query(`create database ${name}`)
  const { socket } = (await installation
    .get()
    .one<{ socket: string }>(`select current_setting('unix_socket_directories') socket`)) as {
    socket: string
  }
  const database = openDatabase(`postgresql://custody@/${name}?host=${encodeURIComponent(socket)}`)
  t.after(() => database.close())
  return database
}

const migrations = async (database: Database) =>
  (await database.query<{ name: string }>('select name from migrations order by name')).map(
    ({ name }) => name,
  )

test('migrations are numbered without gaps, and each function is in the file with its name', () => {
  const numbers = filesOf('migrations').map(({ file }) =>
    Number(/^(\d{3})_[a-z_]+\.sql$/.exec(file)?.[1]),
  )
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => index + 1),
  )
  assert.deepEqual(
    filesOf('migrations').flatMap(({ text }) => functionsIn(text)),
    [],
  )
  assert.deepEqual(
    filesOf('functions').map(({ text }) => functionsIn(text)),
    filesOf('functions').map(({ file }) => [file.replace(/\.sql$/, '')]),
  )
})

test('concurrent starts create every table and function of an empty database once', async (t) => {
  const database = await fresh(t, 'empty')
  const [first, second] = await Promise.all([migrate(database), migrate(database)])
  const all = [
    ...filesOf('migrations').map(({ file }) => file),
    'transactions_form',
    'events_type',
    ...filesOf('functions').map(({ file }) => file.replace(/\.sql$/, '')),
  ]
  assert.deepEqual(
    [first, second].sort((a, b) => b.length - a.length),
    [all, []],
  )
  assert.deepEqual(await migrate(database), [])
})

test('adds the missing migrations to a database of an earlier version, and keeps its rows', async (t) => {
  const database = await fresh(t, 'yesterday')
  const names = filesOf('migrations').map(({ file }) => file)
  const earlier = names.slice(0, 11)
  await database.query(
    'create table migrations (name text primary key, applied_at timestamptz not null default now())',
  )
  for (const { file, text } of filesOf('migrations')) {
    if (!earlier.includes(file)) continue
    await database.query(text)
    await database.query('insert into migrations (name) values ($1)', [file])
  }
  // In this database, migrations created the functions: the function texts are not stored, and one
  // function is outdated.
  await database.query(
    `create or replace function prepaid_balance(p_workspace uuid) returns numeric language sql
      as $$ select -1::numeric $$`,
  )
  const { id } = (await database.one<{ id: string }>(
    `insert into workspaces (name) values ('kept') returning id`,
  )) as { id: string }
  assert.deepEqual(await migrate(database), [
    ...names.slice(11),
    'transactions_form',
    'events_type',
    ...filesOf('functions').map(({ file }) => file.replace(/\.sql$/, '')),
  ])
  assert.deepEqual(await migrations(database), names)
  assert.deepEqual(await database.one('select prepaid_balance($1)', [id]), { prepaid_balance: '0' })
  assert.deepEqual(await migrate(database), [])
})

test('refuses a database that a newer version has migrated, and changes nothing', async (t) => {
  const database = await fresh(t, 'newer')
  await migrate(database)
  await database.query(`insert into migrations (name) values ('999_later.sql')`)
  const stored = await migrations(database)
  await assert.rejects(
    migrate(database),
    /the database was changed by a newer version \(999_later\.sql\): start that version, or restore/,
  )
  assert.deepEqual(await migrations(database), stored)
})

test('replaces a changed function, drops one without a file, and keeps the others', async (t) => {
  const database = await fresh(t, 'functions')
  const files = mkdtempSync(join(tmpdir(), 'custody-functions-'))
  t.after(() => rmSync(files, { recursive: true }))
  const write = (name: string, text: string) => writeFileSync(join(files, `${name}.sql`), text)
  const apply = () => database.transaction((tx) => applyFunctions(tx, pathToFileURL(`${files}/`)))
  const heads = async () =>
    (
      await database.query<{ head: string }>(
        `select oid::regprocedure::text head from pg_proc
          where pronamespace = 'public'::regnamespace order by 1`,
      )
    ).map(({ head }) => head)

  await database.query('create table evidence (id integer)')
  const guard = (says: string) => `
    create or replace function guard() returns trigger language plpgsql as $$ begin raise exception '${says}'; end $$;
    create or replace trigger guarded before delete on evidence for each row execute function guard();`
  write(
    'double',
    'create or replace function double(n integer) returns integer language sql as $$ select 2 * n $$',
  )
  write('guard', guard('no'))
  write(
    'quadruple',
    'create or replace function quadruple(n integer) returns integer language sql as $$ select double(double(n)) $$',
  )
  assert.deepEqual(await apply(), ['double', 'guard', 'quadruple'])
  assert.deepEqual(await apply(), [])

  write(
    'double',
    'create or replace function double(number bigint) returns bigint language sql as $$ select 2 * number $$',
  )
  write('guard', guard('never'))
  rmSync(join(files, 'quadruple.sql'))
  assert.deepEqual(await apply(), ['quadruple', 'double', 'guard'])
  assert.deepEqual(await heads(), ['double(bigint)', 'guard()'])
  await database.query('insert into evidence values (1)')
  await assert.rejects(database.query('delete from evidence'), /never/)

  write(
    'double',
    'create or replace function double(number bigint) returns bigint language sql as $$ select 3 * number $$',
  )
  write('guard', 'create or replace function guard() returns nonsense')
  await assert.rejects(apply())
  assert.deepEqual(
    await database.one('select double(2)::integer'),
    { double: 4 },
    'all of them or none',
  )
})

test('the database and the types accept the same states and plan fields per transaction kind', async (t) => {
  const database = await fresh(t, 'forms')
  await migrate(database)
  const { id } = (await database.one<{ id: string }>(
    `insert into workspaces (name) values ('forms') returning id`,
  ))!
  const make = (kind: string, state: string, plan: object) =>
    database.query(
      `insert into transactions (id, kind, workspace_id, asset, network, amount, fee_asset,
        source_type, destination_type, state, status, plan)
     values (gen_random_uuid(), $1, $2, 'ETH', 'ETH', 1, 'ETH', 'X', 'X', $3, 'pending', $4)`,
      [kind, id, state, JSON.stringify(plan)],
    )
  for (const [kind, { states, plan }] of Object.entries(STATE_SCHEMAS)) {
    for (const state of states)
      await make(kind, state, Object.fromEntries(plan.map((field) => [field, '1'])))
    await assert.rejects(make(kind, 'ELSEWHERE', {}), /transactions_form/)
    await assert.rejects(make(kind, states[0], { unheard_of: '1' }), /transactions_form/)
  }
  await assert.rejects(make('SWEEP', 'VOIDING', {}), /transactions_form/)
  await assert.rejects(make('DEPOSIT', 'CONFIRMING', { need: '1' }), /transactions_form/)
  assert.deepEqual(await migrate(database), [], 'what it says already is not said again')
})

test('a lost connection is distinguished from an error of a statement', async (t) => {
  const { socket } = (await installation
    .get()
    .one<{ socket: string }>(
      `select current_setting('unix_socket_directories') || '/.s.PGSQL.' || current_setting('port') socket`,
    )) as { socket: string }
  const open = new Set<Socket>()
  const proxy = createServer((client) => {
    const server = connect(socket)
    for (const each of [client, server]) open.add(each.on('error', () => undefined))
    client.pipe(server).pipe(client)
  })
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve)
  })
  t.after(() => {
    proxy.close()
  })
  const cut = () => {
    for (const each of open) each.destroy()
  }
  const lost: string[] = []
  const database = openDatabase(
    `postgresql://custody@127.0.0.1:${(proxy.address() as AddressInfo).port}/postgres`,
    { onError: (_error, what) => lost.push(what) },
  )
  t.after(() => database.close())
  const failure = async (work: Promise<unknown>) =>
    work.then(
      () => assert.fail('it was done'),
      (error: unknown) => error,
    )
  const sleeping = () =>
    installation.get().one(
      `select 1 from pg_stat_activity where query like '%pg_sleep(60)%'
          and pid <> pg_backend_pid()`,
    )
  const asleep = async () => {
    while (!(await sleeping())) await new Promise((resolve) => setTimeout(resolve, 10))
    cut()
  }

  assert.equal(isConnectionError(await failure(database.query('select nothing'))), false)
  for (const code of ['EMFILE', 'ENFILE', 'EAGAIN'])
    assert.equal(isConnectionError(Object.assign(new Error(code), { code })), true, code)
  assert.deepEqual(
    ['53100', '53300', '57014', '42601', undefined].map((code) => shortageOfDatabase({ code })),
    [
      'its disk is full',
      'it has no free memory or connection',
      'the statement exceeded its time limit',
      null,
      null,
    ],
  )
  const [alone] = await Promise.all([failure(database.query('select pg_sleep(60)')), asleep()])
  assert.equal(isConnectionError(alone), true, String(alone))
  await installation.get().query(
    `select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(60)%'
        and pid <> pg_backend_pid()`,
  )
  // Otherwise the next cut could come before its connection is open.
  while (await sleeping()) await new Promise((resolve) => setTimeout(resolve, 10))
  const [inside] = await Promise.all([
    failure(
      database.transaction(async (tx) => {
        await failure(tx.query('select pg_sleep(60)'))
        // The connection of the transaction is no longer usable.
        await tx.query('select 1')
      }),
    ),
    asleep(),
  ])
  assert.equal(isConnectionError(inside), true, String(inside))
  assert.deepEqual(
    await database.query('select 1 as one'),
    [{ one: 1 }],
    'the next one gets a new connection',
  )
  cut()
  while (lost.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
  assert.deepEqual(lost, ['a database connection was lost'])
  proxy.close()
  assert.equal(isConnectionError(await failure(database.query('select 1'))), true)
})

test('a single statement that PostgreSQL aborts for a deadlock is retried once', async (t) => {
  const database = await fresh(t, 'knot')
  await database.query('create table knots (id integer primary key, n integer not null)')
  await database.query('insert into knots values (1, 0), (2, 0)')
  await database.query('create sequence tried')
  // The retry locks the rows in the order of the other transaction. Otherwise it could lock them
  // before the other one wakes, and deadlock again.
  await database.query(`create function tie() returns void language plpgsql as $$
    declare first integer := case nextval('tried') when 1 then 2 else 1 end;
  begin
    update knots set n = n + 1 where id = first;
    update knots set n = n + 1 where id = 3 - first;
  end $$`)
  const waiting = () =>
    database.one(
      `select 1 from pg_stat_activity where datname = 'knot' and wait_event_type = 'Lock'`,
    )
  let tied: Promise<unknown> = Promise.resolve()
  await database.transaction(async (tx) => {
    // The longer timeout makes PostgreSQL end the other transaction of the deadlock.
    await tx.query(`set local deadlock_timeout = '1min'`)
    await tx.query('update knots set n = n + 1 where id = 1')
    tied = database.query('select tie()')
    while ((await waiting()) === undefined);
    await tx.query('update knots set n = n + 1 where id = 2')
  })
  await tied
  assert.deepEqual(await database.query('select id, n from knots order by id'), [
    { id: 1, n: 2 },
    { id: 2, n: 2 },
  ])
  assert.equal(
    (await database.one<{ last_value: string }>('select last_value::text from tried'))?.last_value,
    '2',
  )
})
