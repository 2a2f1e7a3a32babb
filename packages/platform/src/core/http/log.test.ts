import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { before, test } from 'node:test'
import { pino, type Logger } from 'pino'
import type { Database } from '../database/pool.ts'
import { systemEnvironment } from '../environment.ts'
import { endpoints } from '../../server/app/endpoints.ts'
import { buildServer } from './server.ts'
import { logEvent, logAuditEntry } from '../ledger/log-events.ts'
import { emit } from '../ledger/post.ts'
import { createMetrics } from '../metrics.ts'
import { writeAudit } from '../../console-api/people/audit-log.ts'
import { LoadMonitor } from '../load-monitor.ts'
import { partialApplication } from '../../../testing/partial-application.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'

/**
 * Tests of the log that an operator reads after "ready": one line for each committed event, and one
 * for each refusal.
 */
const lines: Record<string, unknown>[] = []
const log: Logger = pino(
  { level: 'info' },
  {
    write: (text: string) => {
      lines.push(JSON.parse(text) as Record<string, unknown>)
    },
  },
)
const taken = () =>
  lines
    .splice(0)
    .map(({ level: _level, time: _time, pid: _pid, hostname: _hostname, ...line }) => line)
const failures: string[] = []
const opened = useDatabase({
  migrated: true,
  onEvent: (event) => {
    logEvent(log, event)
  },
  onAudit: (entry) => {
    logAuditEntry(log, entry)
  },
  onError: (_error, what) => {
    failures.push(what)
  },
})
let database: Database
let workspace: string
before(async () => {
  await opened.started
  database = opened.get()
  workspace = (await database.one<{ id: string }>(
    `insert into workspaces (name) values ('log') returning id`,
  ))!.id
})

const CONFIRMED =
  '{"id":"t-1","type":"Withdraw","asset":"ETH","amount":1.000000000000000001,"fee":0.0001,"hash":"0xab","memo":"for Mary","failure_reason":null}'
const LINE = {
  event: 'transaction.confirmed',
  id: 't-1',
  type: 'Withdraw',
  asset: 'ETH',
  amount: '1.000000000000000001',
  fee: '0.0001',
  hash: '0xab',
  msg: 'transfer confirmed',
}

test('a committed event is logged once with id, asset, exact amount and hash, without memo', async () => {
  await database.transaction(async (tx) => {
    await emit(tx, workspace, null, 'transaction.confirmed', CONFIRMED)
    assert.deepEqual(taken(), [], 'not before the commit')
  })
  assert.deepEqual(taken(), [{ ...LINE, workspace_id: workspace }])
  await emit(
    database,
    workspace,
    null,
    'deposit.confirmed',
    '{"id":"d-1","asset":"BTC","amount":2}',
  )
  assert.deepEqual(taken(), [
    {
      event: 'deposit.confirmed',
      workspace_id: workspace,
      id: 'd-1',
      asset: 'BTC',
      amount: '2',
      msg: 'deposit credited',
    },
  ])
})

const OWNER = {
  type: 'person',
  id: 'p-1',
  name: 'owner@example.test',
  session: null,
  ip: '10.0.0.9',
} as const

test('an audit log entry is logged once after its commit, without names and details', async () => {
  const deed = {
    action: 'person.role_changed',
    object: 'p-2?query=of a request',
    details: { from: 'viewer', to: 'owner', email: 'mary@example.test' },
  }
  await assert.rejects(
    database.transaction(async (tx) => {
      await writeAudit(tx, workspace, OWNER, deed)
      throw new Error('no')
    }),
    /no/,
  )
  assert.deepEqual(taken(), [], 'what was rolled back is not told')
  await database.transaction(async (tx) => {
    await writeAudit(tx, workspace, OWNER, deed)
    assert.deepEqual(taken(), [], 'not before the commit')
  })
  const row = await database.one<{ hash: Buffer }>(
    'select hash from audit_log where workspace_id = $1 and seq = 1',
    [workspace],
  )
  assert.deepEqual(taken(), [
    {
      action: 'person.role_changed',
      workspace_id: workspace,
      seq: 1,
      hash: row?.hash.toString('hex'),
      object: 'p-2',
      actor_type: 'person',
      actor_id: 'p-1',
      ip: '10.0.0.9',
      msg: 'audit log entry written',
    },
  ])
})

test('a rolled back change is not logged, and a retried change is logged once', async () => {
  await assert.rejects(
    database.transaction(async (tx) => {
      await emit(tx, workspace, null, 'transaction.failed', CONFIRMED)
      throw new Error('no')
    }),
    /no/,
  )
  assert.deepEqual(taken(), [])
  let tries = 0
  await database.transaction(async (tx) => {
    await emit(tx, workspace, null, 'transaction.failed', CONFIRMED)
    if (++tries < 3) throw Object.assign(new Error('serialization'), { code: '40001' })
  })
  assert.deepEqual([tries, taken().map(({ msg }) => msg)], [3, ['transfer failed']])
})

test('a change is stored even if logging its event fails, and the failure is logged', async () => {
  const done = async () =>
    (
      await database.one<{ n: number }>(
        `select count(*)::int n from workspaces where name like 'untold-%'`,
      )
    )?.n
  const unpublished = { type: 'transaction.created' as const, workspace, payload: '{"id":' }
  assert.equal(
    await database.transaction(async (tx) => {
      await tx.query(`insert into workspaces (name) values ('untold-1')`)
      tx.emit(unpublished)
      return 'done'
    }),
    'done',
  )
  database.emit(unpublished)
  assert.equal(await done(), 1)
  assert.deepEqual(
    failures.splice(0),
    Array(2).fill('an event was committed, but its listeners could not be notified'),
  )
})

test('a minor event is logged at level debug only', async () => {
  await emit(database, workspace, null, 'deposit.detected', CONFIRMED)
  assert.deepEqual(taken(), [])
})

test('logs a deposit without a wallet, and deposits and addresses that screening releases', async () => {
  for (const type of ['deposit.suspended', 'deposit.released', 'address.unfrozen'] as const)
    await emit(database, workspace, null, type, '{"id":"d-1"}')
  assert.deepEqual(
    taken().map(({ msg }) => msg),
    ['deposit in suspense: it belongs to no wallet', 'deposit released', 'address unfrozen'],
  )
})

test('each error response is logged once with its request_id, without its query', async () => {
  const services = partialApplication({
    settings: { trustProxy: 0, rateLimit: 1000 },
    environment: systemEnvironment(),
    metrics: createMetrics(),
    log,
    database,
    pressure: new LoadMonitor(),
    readiness: async () => ({ ready: false, signing: false, checks: {} }),
    checkout: { base: 'http://127.0.0.1' },
  })
  const server = await buildServer(services, endpoints)
  const answer = await server.inject({
    url: '/dac/v1/wallets?asset=secret',
    headers: { authorization: 'Bearer hidden' },
  })
  assert.equal(answer.statusCode, 401)
  const [line, ...more] = taken()
  assert.deepEqual(more, [])
  assert.deepEqual(line, {
    request_id: answer.headers['x-request-id'],
    method: 'GET',
    path: '/dac/v1/wallets',
    status: 401,
    code: 'UNAUTHORIZED',
    field: 'x-api-key',
    ip: '127.0.0.1',
    msg: 'request refused',
  })
  assert.doesNotMatch(JSON.stringify(line), /secret|hidden/)
  assert.equal((await server.inject('/livez')).statusCode, 200)
  assert.deepEqual(taken(), [])
  assert.equal((await server.inject('/nowhere')).statusCode, 404)
  assert.deepEqual(
    taken().map(({ status, code }) => [status, code]),
    [[404, 'NOT_FOUND']],
  )
  assert.equal((await server.inject('/%zz')).statusCode, 400, 'before routing')
  assert.deepEqual(
    taken().map(({ path, status, code }) => [path, status, code]),
    [['/%zz', 400, 'INVALID_REQUEST']],
  )
  const base = new URL(await server.listen({ port: 0, host: '127.0.0.1' }))
  await new Promise((resolve) => {
    connect(Number(base.port), base.hostname)
      .on('close', resolve)
      .on('data', () => undefined)
      .end('nonsense\r\n\r\n')
  })
  assert.deepEqual(
    taken().map(({ status, code, ip }) => [status, code, ip]),
    [[400, 'INVALID_REQUEST', '127.0.0.1']],
  )
  assert.equal((await server.inject('/readyz')).statusCode, 503)
  assert.deepEqual(
    taken().map(({ msg, status }) => [msg, status]),
    [['request not served', 503]],
  )
  await server.close()
})

test('/readyz?deep returns 503 if transfers would be accepted but could not be signed', async () => {
  const services = partialApplication({
    settings: { trustProxy: 0, rateLimit: 1000 },
    environment: systemEnvironment(),
    metrics: createMetrics(),
    log,
    database,
    pressure: new LoadMonitor(),
    readiness: async () => ({ ready: true, signing: false, checks: { signing: 'dead' } }),
    checkout: { base: 'http://127.0.0.1' },
  })
  const server = await buildServer(services, endpoints)
  assert.equal((await server.inject('/readyz')).statusCode, 200)
  const deep = await server.inject('/readyz?deep')
  assert.deepEqual(
    [deep.statusCode, deep.json()],
    [503, { status: 'unavailable', checks: { signing: 'dead' } }],
  )
  await server.close()
})
