import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommitUnknown, isConnectionError, openDatabase } from './pool.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'

/**
 * Tests that callers that can retry wait for the database no longer than HTTP clients wait. Time
 * advances only by the ticks below.
 */
const installation = useDatabase({ migrated: false, server: 'own' })
const realSetTimeout = setTimeout

test('waits 8 seconds for the database if the caller can retry, and longer for other work', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const admin = installation.get()
  const { socket } = (await admin.one<{ socket: string }>(
    `select current_setting('unix_socket_directories') socket`,
  )) as { socket: string }
  const database = openDatabase(
    `postgresql://custody@/postgres?host=${encodeURIComponent(socket)}`,
    { max: 1, onError: () => undefined },
  )
  t.after(() => database.close())
  assert.equal(database.shortTimeoutMs, 8000)
  await database.query('create table kept (id integer primary key)')
  const { pid } = (await database.one<{ pid: number }>('select pg_backend_pid() pid')) as {
    pid: number
  }
  const url = `postgresql://custody@/postgres?host=${encodeURIComponent(socket)}`
  const other = openDatabase(url, { max: 1, onError: () => undefined })
  t.after(() => other.close())
  const failure = (work: Promise<unknown>) =>
    work.then(
      () => assert.fail('it was done'),
      (error: unknown) => error,
    )
  const insert = (id: number) =>
    database.withShortTimeout(() => database.query('insert into kept values ($1)', [id]))
  const ids = async () =>
    (await database.query<{ id: number }>('select id from kept order by id')).map(({ id }) => id)
  const late = (error: unknown) => {
    assert.match(String(error), /did not respond within \d+ ms/)
    assert.deepEqual([isConnectionError(error), error instanceof CommitUnknown], [true, false])
  }
  let patient: Promise<number[]> | undefined
  // A lock of another transaction simulates a database that does not respond.
  await other.transaction(async (tx) => {
    await tx.query('lock table kept in access exclusive mode')
    const statement = failure(insert(1))
    const waits = `select 1 from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`
    while (!(await admin.one(waits, [pid])))
      await new Promise((resolve) => realSetTimeout(resolve, 10))
    t.mock.timers.tick(8000)
    late(await statement)

    let isOver = false
    patient = ids().finally(() => (isOver = true))
    const connection = failure(insert(2))
    t.mock.timers.tick(8000)
    late(await connection)
    assert.equal(isOver, false)
  })
  await patient
  assert.equal(
    (await ids()).includes(2),
    false,
    'without a connection nothing was asked, and the one that came late is used again',
  )
})
