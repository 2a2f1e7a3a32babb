import assert from 'node:assert/strict'
import { createPrivateKey, randomBytes, randomUUID } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { seal, NO_BINDING, type Header } from '../envelope.ts'
import { Store } from '../store/index.ts'
import { RecordStore } from '../store/record.ts'
import {
  ETH,
  eth,
  SignerCluster,
  now,
  pay,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'

let cluster: SignerCluster
let workspace: Workspace
/**
 * Time in milliseconds for which a node waits for another node's answer. One test waits until it
 * has passed, and a slow machine must not exceed it.
 */
const ROUND_MS = 15_000
const ONE = 10n ** 18n
const secrets: string[] = []

before(async () => {
  cluster = await SignerCluster.start({
    edit: (config) => {
      config.timeouts_ms.round = ROUND_MS
    },
    where: 'apart',
  })
  workspace = await cluster.workspace()
  callers = await Promise.all(Array.from({ length: 10 }, (_, at) => workspace.caller(100 + at)))
})
after(async () => {
  await cluster.stop()
})

/**
 * Callers of accounts that have not paid anything. All three nodes must run during an enrolment, so
 * the callers are created before the tests.
 */
let callers: Caller[]
/**
 * Creates the first payment of an account, so that a test does not depend on signatures of earlier
 * tests.
 */
const make = async () => {
  const caller = callers.pop()!
  const from = [caller.sub_account, ETH.chain_index, 0]
  const request = await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  secrets.push(request.token)
  return { purpose: pay(request), unsigned: eth(from, { value: ONE, nonce: 0 }), from }
}

test('status reports the state of a node', async () => {
  const begun = now()
  const { status, body } = await cluster.get(2, '/status')
  assert.equal(status, 200)
  assert.equal(body.node, 2)
  assert.equal(body.ready, true)
  assert.ok(begun <= body.clock && body.clock <= now())
  assert.deepEqual(body.bans, [])
  assert.match(body.record.head, /^[0-9a-f]{64}$/)
  assert.deepEqual(
    body.peers.map((peer: Json) => peer.node),
    [1, 3],
  )
})

test('while one node is killed, the other pair signs, and a pair with it gets an error', async () => {
  await cluster.kill(2)
  const { purpose, unsigned } = await make()
  const away = await workspace.sign(purpose, unsigned, [1, 2])
  assert.equal(away.status, 503)
  assert.equal(away.body.error, 'PEER_UNAVAILABLE')
  const good = await workspace.sign(purpose, unsigned, [1, 3])
  assert.equal(good.status, 200, JSON.stringify(good.body))
  await cluster.run(2)
  const again = await workspace.sign(purpose, unsigned, [2, 1])
  assert.deepEqual(again.body, good.body)
})

test('while one node hangs, a call ends at the time-out, and the other pair signs', async () => {
  const { purpose, unsigned } = await make()
  cluster.processes.get(3)!.kill('SIGSTOP')
  const [hung, other] = (await (async () => {
    try {
      return [
        await workspace.sign(purpose, unsigned, [1, 3]),
        await workspace.sign(purpose, unsigned, [1, 2]),
      ]
    } finally {
      cluster.processes.get(3)!.kill('SIGCONT')
    }
  })()) as [Answer, Answer]
  assert.equal(hung.status, 503, JSON.stringify(hung.body))
  assert.equal(hung.body.error, 'PEER_UNAVAILABLE')
  // The partner judges the order before its first round, and has one more second for that.
  assert.equal(hung.body.message, `peer node 3 did not respond within ${ROUND_MS + 1000} ms`)
  assert.equal(other.status, 200, JSON.stringify(other.body))
  assert.equal((await workspace.sign(purpose, unsigned, [3, 1])).status, 200)
})

test('a client without a certificate, or with a foreign one, gets no response', async () => {
  await assert.rejects(
    cluster.send(1, 'GET', '/status', null, {}),
    /alert|certificate|ECONNRESET|socket|hang up/i,
  )
  const stranger = await import('../setup.ts')
  const foreign = new SignerCluster()
  await stranger.setup({ home: foreign.home, ports: [1, 2, 3], mode: 'local' })
  const credentials = {
    key: readFileSync(join(foreign.home, 'platform', 'tls.key'), 'utf8'),
    cert: readFileSync(join(foreign.home, 'platform', 'tls.crt'), 'utf8'),
  }
  await assert.rejects(
    cluster.send(1, 'GET', '/status', null, credentials),
    /alert|certificate|ECONNRESET|socket|hang up/i,
  )
  await foreign.stop()
})

test("peer endpoints refuse the platform's certificate, and the platform's endpoints a peer's", async () => {
  for (const path of [
    '/peer/ping',
    '/peer/sign/open',
    '/peer/key/certify',
    '/peer/record',
    '/peer/nothing',
  ]) {
    const { status, body } = await cluster.post(1, path, {})
    assert.equal(status, 403)
    assert.equal(body.error, 'NOT_ALLOWED')
  }
  const home = cluster.peers.nodes[1]!.home
  const credentials = {
    key: readFileSync(join(home, 'tls.key'), 'utf8'),
    cert: readFileSync(join(home, 'tls.crt'), 'utf8'),
  }
  const { status } = await cluster.send(1, 'POST', '/sign', '{}', credentials)
  assert.equal(status, 403)
})

test('malformed calls never end a node process', async () => {
  const bodies = [
    '',
    '{',
    'null',
    '[]',
    '"x"',
    '{"workspace":1}',
    '{"__proto__":{"purpose":1}}',
    `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
    randomBytes(500).toString('latin1'),
  ]
  for (const path of [
    '/sign',
    '/key',
    '/receipt',
    '/receipts',
    '/void',
    '/unknown',
    '/sign?x',
    '/status',
  ]) {
    for (const body of bodies) {
      const { status } = await cluster.send(1, 'POST', path, body)
      assert.ok(status >= 400 && status < 500, `${path} ${status}`)
    }
  }
  assert.equal((await cluster.send(1, 'GET', '/nothing', null)).status, 404)
  for (const command of ['enrol', 'revoke', 'drain', 'backup', 'restore', 'nothing', '__proto__']) {
    const { status } = await cluster.operator(1, command, { x: 1 })
    assert.ok(status >= 400 && status < 500, `${command} ${status}`)
  }
  const { purpose, unsigned } = await make()
  for (const inputs of [
    [],
    [{ path: [1.5] }],
    [{ path: [-1, 2, 3] }],
    [{ path: [2 ** 31, 60, 0] }],
  ]) {
    assert.equal(
      (
        await cluster.post(1, '/sign', {
          workspace: workspace.name,
          purpose,
          unsigned: { ...unsigned, inputs },
          partner: 2,
        })
      ).status,
      400,
    )
  }
  assert.equal(
    (await cluster.post(1, '/sign', { workspace: workspace.name, purpose, unsigned, partner: 1 }))
      .status,
    400,
  )
  assert.equal(
    (await cluster.post(1, '/sign', { workspace: 'none', purpose, unsigned, partner: 2 })).body
      .error,
    'WORKSPACE_MISMATCH',
  )
  // Raw bytes that are not TLS.
  const socket = connect(cluster.peers.nodes[0]!.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\n\r\n')
  await new Promise((resolve) => {
    socket.on('close', resolve)
  })
  assert.equal((await workspace.sign(purpose, unsigned)).status, 200)
})

test('a hostile node cannot make another node sign, impersonate a third, or reset its record', async () => {
  await cluster.kill(1)
  const home = cluster.peers.nodes[0]!.home
  const credentials = {
    key: readFileSync(join(home, 'tls.key'), 'utf8'),
    cert: readFileSync(join(home, 'tls.crt'), 'utf8'),
  }
  const identity = createPrivateKey(readFileSync(join(home, 'identity.key'), 'utf8'))
  const store = new Store(join(home, 'record.sqlite'), () => Date.now())
  const { height, head } = store.record
  store.close()
  const boot = randomUUID()
  const header = (call: string, more: Partial<Header> = {}): Header => ({
    protocol: 'custody/peer',
    version: 1,
    call,
    request: randomBytes(16).toString('hex'),
    response: false,
    status: 0,
    ...NO_BINDING,
    from: 1,
    to: 2,
    height,
    head,
    generation: 0,
    boot,
    ...more,
  })
  const say = async (call: string, body: unknown, more: Partial<Header> = {}, key = identity) => {
    const answer = await cluster.send(
      2,
      'POST',
      call,
      String(seal(key, header(call, more), body)),
      credentials,
    )
    return answer.body.payload ? JSON.parse(answer.body.payload) : answer.body
  }
  // Node 2 queries node 1 for the hash of the record that it knows. No process answers for node 1,
  // so the message is not accepted.
  assert.equal((await say('/peer/sign/open', {})).error, 'PEER_UNAVAILABLE')
  assert.equal((await say('/peer/sign/open', {}, { height: 1 })).error, 'HEAD_WENT_BACK')
  assert.equal((await say('/peer/ping', {}, { from: 3 })).error, 'NOT_ALLOWED')
  assert.equal((await say('/peer/ping', {}, { to: 3 })).error, 'NOT_ALLOWED')
  const other = createPrivateKey(
    readFileSync(join(cluster.peers.nodes[2]!.home, 'identity.key'), 'utf8'),
  )
  assert.equal((await say('/peer/ping', {}, {}, other)).error, 'NOT_ALLOWED')
  assert.deepEqual(Object.keys(await say('/peer/ping', {})), ['clock'])
  await cluster.run(1)
  const { purpose, unsigned } = await make()
  assert.equal((await workspace.sign(purpose, unsigned)).status, 200)
})

test('both peers refuse a rolled-back record, also the peer without a part in the lost entries', async () => {
  await cluster.kill(3)
  const home = cluster.peers.nodes[2]!.home
  const files = ['record.sqlite', 'record.sqlite-wal']
    .filter((name) => existsSync(join(home, name)))
    .map((name) => [join(home, name), readFileSync(join(home, name))] as const)
  await cluster.run(3)
  const { purpose, unsigned, from } = await make()
  assert.equal((await workspace.sign(purpose, unsigned, [3, 1])).status, 200)
  await cluster.kill(3)
  const later = ['record.sqlite', 'record.sqlite-wal']
    .filter((name) => existsSync(join(home, name)))
    .map((name) => [join(home, name), readFileSync(join(home, name))] as const)
  for (const [path] of later) rmSync(path)
  for (const [path, bytes] of files) writeFileSync(path, bytes)
  await cluster.run(3)
  // Node 3 has lost the record of what it signed with node 1; node 2 never had it.
  const second = eth(from, { value: ONE, nonce: 1 })
  assert.equal((await workspace.sign(purpose, second, [2, 3])).body.error, 'HEAD_WENT_BACK')
  assert.equal((await workspace.sign(purpose, second, [1, 3])).body.error, 'NOT_EXCLUSIVE')
  // Node 3 itself lacks nonces, and no peer sends them.
  for (const partner of [1, 2] as const)
    assert.ok(
      ['HEAD_WENT_BACK', 'NONCE_GAP'].includes(
        (await workspace.sign(purpose, second, [3, partner])).body.error,
      ),
    )
  await cluster.kill(3)
  for (const [path] of files) rmSync(path, { force: true })
  for (const [path, bytes] of later) writeFileSync(path, bytes)
  rmSync(join(home, 'record.sqlite-shm'), { force: true })
  await cluster.run(3)
  const back = await workspace.sign(purpose, unsigned, [3, 2])
  assert.equal(back.status, 200, JSON.stringify(back.body))
})

test('after kill -9 under load, only the same bytes are signed', async () => {
  const callers = await Promise.all(Array.from({ length: 6 }, (_, at) => workspace.caller(50 + at)))
  const orders = await Promise.all(
    callers.map(async (each) => ({
      path: [each.sub_account, ETH.chain_index, 0],
      purpose: pay(
        await transfer(each, { asset: 'ETH', amount: 1, destination_address: SINK_ETH }),
      ),
    })),
  )
  const all = (
    pairs: readonly (readonly [number, number])[],
    more: { maxFeePerGas?: bigint; nonce?: number } = {},
  ) =>
    orders.map(({ path, purpose }, at) =>
      workspace.sign(
        purpose,
        eth(path, { value: ONE, nonce: 0, ...more }),
        pairs[at % pairs.length]!,
      ),
    )
  const sent = all([
    [1, 2],
    [2, 3],
    [3, 1],
  ])
  // Now some orders are signed, and others are in progress.
  await Promise.race(sent)
  await cluster.kill(2)
  const first = await Promise.allSettled(sent)
  await cluster.run(2)
  const second = await Promise.allSettled(
    all([
      [2, 1],
      [3, 2],
      [1, 3],
    ]),
  )
  for (const [at, answer] of second.entries()) {
    assert.ok(answer.status === 'fulfilled' && answer.value.status === 200, JSON.stringify(answer))
    const before = first[at]!
    // A signature that was returned before the crash belongs to the same transaction.
    if (before.status === 'fulfilled' && before.value.status === 200)
      assert.equal(
        before.value.body.signed.raw.slice(0, 20),
        answer.value.body.signed.raw.slice(0, 20),
      )
  }
  for (const answer of await Promise.allSettled(
    all(
      [
        [1, 2],
        [2, 3],
        [3, 1],
      ],
      { nonce: 1 },
    ),
  ))
    assert.ok(
      answer.status === 'fulfilled' && answer.value.body.error === 'NOT_EXCLUSIVE',
      JSON.stringify(answer),
    )
})

test('after proof of misbehaviour a node is banned with 409, also after a restart', async () => {
  await cluster.kill(3)
  const store = new Store(join(cluster.peers.nodes[2]!.home, 'record.sqlite'), () => Date.now())
  store.append('ban', { node: 2, reason: 'drill' })
  store.close()
  await cluster.run(3)
  const { purpose, unsigned } = await make()
  for (const pair of [
    [3, 2],
    [2, 3],
  ] as const) {
    const { status, body } = await workspace.sign(purpose, unsigned, pair)
    assert.equal(status, 409)
    assert.equal(body.error, 'BANNED')
  }
  assert.equal((await workspace.sign(purpose, unsigned, [3, 1])).status, 200)
  assert.deepEqual((await cluster.get(3, '/status')).body.bans, [2])
})

test('refuses to sign with a key without a workspace, or for a workspace without a key', async () => {
  const name = randomUUID()
  const api_key = randomUUID()
  for (const node of [1, 2, 3])
    await cluster.enrol(node, { api_key, workspace: name, sub_account: 1 })
  const request = await transfer(
    { api_key, sub_account: 1 },
    { asset: 'ETH', amount: 1, destination_address: SINK_ETH },
  )
  const { status, body } = await cluster.post(1, '/sign', {
    workspace: name,
    purpose: pay(request),
    unsigned: eth([1, ETH.chain_index, 0], { value: ONE }),
    partner: 2,
  })
  assert.equal(status, 503)
  assert.equal(body.error, 'KEY_NOT_READY')
})

test('data directories are private, and logs contain no secrets', async () => {
  for (const { home } of cluster.peers.nodes) {
    assert.equal(statSync(home).mode & 0o777, 0o700)
    for (const file of ['config.json', 'identity.key', 'tls.key', 'kek'])
      assert.equal(statSync(join(home, file)).mode & 0o077, 0, file)
    secrets.push(
      readFileSync(join(home, 'identity.key'), 'utf8').split('\n')[1]!,
      readFileSync(join(home, 'tls.key'), 'utf8').split('\n')[1]!,
    )
    const kek = readFileSync(join(home, 'kek'))
    secrets.push(kek.toString('hex'), kek.toString('base64'), kek.toString('utf8').trim())
  }
  for (const node of [1, 2, 3])
    secrets.push(JSON.parse(readFileSync(join(cluster.home, `recovery-${node}`), 'utf8')).secret)
  assert.ok(cluster.logs.length > 100)
  for (const secret of secrets) if (secret.length > 8) assert.ok(!cluster.logs.includes(secret))
  assert.ok(!cluster.logs.includes('PRIVATE'))
})

test('SIGTERM or a closed standard input ends a node with code 0, even while it is connected', async () => {
  assert.equal((await cluster.get(1, '/status')).status, 200)
  assert.equal((await cluster.get(2, '/status')).status, 200)
  assert.equal(await cluster.kill(1, 'SIGTERM'), 0)
  const child = cluster.processes.get(2)!
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', resolve)
  })
  child.stdin!.end()
  assert.equal(await ended, 0)
  cluster.processes.delete(2)
  assert.ok(!existsSync(cluster.peers.nodes[1]!.socket))
  await cluster.run(1)
  await cluster.run(2)
  const { purpose, unsigned } = await make()
  assert.equal((await workspace.sign(purpose, unsigned)).status, 200)
})

test('a start refuses a tampered record, an unknown entry kind, and a second process', async () => {
  await assert.rejects(
    cluster.run.call(
      { ...cluster, peers: cluster.peers, processes: new Map(), logs: '' } as never,
      1,
    ),
    /ended with 1/,
  )
  await cluster.kill(1)
  const path = join(cluster.peers.nodes[0]!.home, 'record.sqlite')
  const database = new DatabaseSync(path)
  database.exec('DROP TRIGGER record_no_update')
  database.exec(
    `UPDATE record SET body = replace(body, '"revoked"', '"x"'), at = at + 1 WHERE height = 3`,
  )
  database.close()
  await assert.rejects(cluster.run(1), /The record is broken: entry 3/)
  cluster.processes.delete(1)
  await cluster.kill(2)
  const later = new DatabaseSync(join(cluster.peers.nodes[1]!.home, 'record.sqlite'))
  const { height, hash } = later
    .prepare('SELECT height, hash FROM record ORDER BY height DESC LIMIT 1')
    .get() as { height: number; hash: string }
  const next = [height + 1, Date.now(), 'pledge', '{}'] as const
  later
    .prepare('INSERT INTO record (height, at, kind, body, hash) VALUES (?, ?, ?, ?, ?)')
    .run(...next, RecordStore.hashOf(...next, hash))
  later.close()
  await assert.rejects(
    cluster.run(2),
    new RegExp(`entry ${height + 1} has the kind "pledge", which this version does not know`),
  )
  cluster.processes.delete(2)
})
