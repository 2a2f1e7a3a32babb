import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  CommitUnknown,
  isConnectionError,
  openDatabase,
  type Database,
  type DatabaseOptions,
} from './pool.ts'
import { madeOnce } from '../http/replay.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'

/**
 * Tests of the effects of a change of the primary on connections, simulated on one server: the
 * server becomes read-only, or waits for a standby that does not exist.
 */

const installation = useDatabase({ migrated: false, server: 'own' })
const NOBODY = 'nobody'

async function fresh(
  t: TestContext,
  name: string,
  options: DatabaseOptions = {},
): Promise<Database> {
  await installation.get().query(`create database ${name}`)
  const { socket } = (await installation
    .get()
    .one<{ socket: string }>(`select current_setting('unix_socket_directories') socket`)) as {
    socket: string
  }
  const database = openDatabase(
    `postgresql://custody@/${name}?host=${encodeURIComponent(socket)}`,
    { onError: () => undefined, ...options },
  )
  t.after(() => database.close())
  await database.query('create table kept (id integer primary key)')
  return database
}

/** The real timer function, also for tests that replace timers. */
const realSetTimeout = setTimeout

const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => assert.fail('it was done'),
    (error: unknown) => error,
  )
const idsIn = async (database: Database) =>
  (await database.query<{ id: number }>('select id from kept order by id')).map(({ id }) => id)
const insert = (database: Database, id: number) =>
  database.query('insert into kept values ($1)', [id])

async function until<T>(read: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const value = await read()
    if (value !== undefined) return value
    await new Promise((resolve) => realSetTimeout(resolve, 10))
  }
}

/** Returns the backends of a database that wait for the standby. */
const waiting = (name: string) =>
  installation
    .get()
    .one<{ pid: number }>(
      `select pid from pg_stat_activity where datname = $1 and wait_event = 'SyncRep'`,
      [name],
    )

async function standbys(names: string): Promise<void> {
  await installation.get().query(`alter system set synchronous_standby_names = '${names}'`)
  await installation.get().query('select pg_reload_conf()')
  await until(
    async () =>
      (await installation
        .get()
        .one(`select 1 where current_setting('synchronous_standby_names') = $1`, [names])) && true,
  )
  // The checkpointer informs all other processes whether commits wait, and may read the new setting
  // last.
  const commits = () =>
    installation.get().query(`select pg_logical_emit_message(true, 'probe', '')`)
  if (names === '') return void (await commits())
  for (let isOver = false; ; isOver = false) {
    const committed = commits()
      .catch(() => undefined)
      .finally(() => (isOver = true))
    const held = await until(async () =>
      isOver
        ? 'none'
        : await installation.get().one<{ pid: number }>(
            `select pid from pg_stat_activity where wait_event = 'SyncRep'
                and query like '%emit_message%' and pid <> pg_backend_pid()`,
          ),
    )
    if (held !== 'none') await installation.get().query('select pg_cancel_backend($1)', [held.pid])
    await committed
    if (held !== 'none') return
  }
}

test('closes connections to a server that became read-only, and reconnects for the statement', async (t) => {
  const database = await fresh(t, 'demoted', { max: 3 })
  const readsOnly = (is: boolean) =>
    installation
      .get()
      .query(
        `alter database demoted ${is ? 'set default_transaction_read_only = on' : 'reset all'}`,
      )
  const connections = await database.query<{ pid: number }>('select pg_backend_pid() pid')
  await readsOnly(true)
  await installation.get().query('select pg_terminate_backend($1)', [connections[0]?.pid])
  // A query on the connection fails until this process notices that the connection has ended.
  await until(
    async () =>
      (
        await database
          .query<{ pid: number }>('select pg_backend_pid() pid')
          .catch(() => connections)
      )[0]?.pid !== connections[0]?.pid || undefined,
  )
  const refused = await failure(insert(database, 1))
  assert.equal((refused as { code: string }).code, '25006')
  assert.equal(isConnectionError(refused), true)

  // Opens three connections while the server is read-only, and uses them after it accepts writes
  // again.
  const atOnce = () =>
    Promise.all(Array.from({ length: 3 }, () => database.query('select pg_sleep(0.1)')))
  await atOnce()
  await readsOnly(false)
  await insert(database, 1)
  await Promise.all(
    [2, 3, 4].map((id) =>
      database.transaction(async (tx) => {
        await tx.query('insert into kept values ($1)', [id])
      }),
    ),
  )
  assert.deepEqual(await idsIn(database), [1, 2, 3, 4])
})

test('a commit that waits too long for a standby is reported as unknown, and is not cancelled', async (t) => {
  // Time advances only by the ticks below, so a slow machine exceeds neither limit.
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const database = await fresh(t, 'hanging', { commitMs: 300, answerMs: 600 })
  await standbys(NOBODY)
  t.after(() => standbys(''))
  const waitingCount = async () =>
    (await installation.get().one<{ count: number }>(
      `select count(*)::integer count from pg_stat_activity where datname = 'hanging'
          and wait_event = 'SyncRep'`,
    ))!.count
  const whole = failure(database.transaction((tx) => tx.query('insert into kept values (1)')))
  const alone = failure(insert(database, 2))
  await until(async () => (await waitingCount()) === 2 || undefined)
  t.mock.timers.tick(300)
  assert.ok((await whole) instanceof CommitUnknown, String(await whole))
  assert.match(String(await whole), /did not respond within 300 ms/)
  t.mock.timers.tick(300)
  assert.match(String(await alone), /did not respond within 600 ms/)
  assert.equal(isConnectionError(await whole) && isConnectionError(await alone), true)
  assert.equal(await waitingCount(), 2, 'both still wait')
  assert.deepEqual(await idsIn(database), [], 'and nobody sees them')
  await standbys('')
  assert.deepEqual(
    await until(async () => ((await idsIn(database)).length === 2 ? idsIn(database) : undefined)),
    [1, 2],
  )
})

for (const [how, end] of [
  ['cancelled', 'pg_cancel_backend'],
  ['terminated', 'pg_terminate_backend'],
] as const) {
  test(`a commit is reported as unknown if its wait for the standby is ${how}`, async (t) => {
    const name = `alone_${how}`
    const errors: unknown[] = []
    const database = await fresh(t, name, { onEvent: (event) => errors.push(event) })
    await standbys(NOBODY)
    t.after(() => standbys(''))
    const cutOff = async () =>
      installation.get().query(`select ${end}($1)`, [(await until(() => waiting(name))).pid])
    const [whole] = await Promise.all([
      failure(
        database.transaction(async (tx) => {
          await tx.query('insert into kept values (1)')
          tx.emit({ type: 'transaction.created', workspace: '', payload: '' })
        }),
      ),
      cutOff(),
    ])
    assert.ok(whole instanceof CommitUnknown, String(whole))
    const [alone] = await Promise.all([failure(insert(database, 2)), cutOff()])
    assert.equal(isConnectionError(alone), true, String(alone))
    assert.deepEqual(errors, [])
    assert.deepEqual(await idsIn(database), [1, 2])
  })
}

test('after a commit with unknown outcome, no stored response is looked up', async () => {
  const first = { text: 'the first answer' }
  await assert.rejects(
    madeOnce(
      async () => first,
      async () => {
        throw new CommitUnknown(new Error('cut'))
      },
    ),
    CommitUnknown,
  )
  assert.equal(
    await madeOnce(
      async () => first,
      async () => {
        throw new Error('refused meanwhile')
      },
    ),
    first,
  )
})
