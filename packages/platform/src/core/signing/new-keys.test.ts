import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { ApiError } from '../errors.ts'
import { WorkspaceKeys } from './keys.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from './nodes.ts'

/**
 * Tests of waiting for the key of a new workspace, on a real database. The nodes are scripted, and
 * the clock advances by the pauses.
 */
const database = useDatabase({ migrated: true })
const PUBLIC = '02'.repeat(33)
const CHAIN = '03'.repeat(32)

type Reply = { place: number } | 'key' | Error
class Nodes implements Pick<SignerNodes, 'peers' | 'call' | 'verify'> {
  readonly peers = [1, 2, 3].map((node) => ({
    node,
    host: '',
    port: 0,
    certificate: '',
    identity: '',
  }))
  readonly calls: { node: number; timeoutMs: number }[] = []
  readonly reply: (node: number, call: number) => Reply
  readonly workspace: string

  constructor(workspace: string, reply: (node: number, call: number) => Reply) {
    this.workspace = workspace
    this.reply = reply
  }

  async call<T>(
    node: number,
    _method: string,
    path: string,
    body: unknown,
    timeoutMs: number,
  ): Promise<T> {
    assert.deepEqual([path, body], ['/key', { workspace: this.workspace, curve: 'secp256k1' }])
    this.calls.push({ node, timeoutMs })
    const reply = this.reply(node, this.calls.length)
    if (reply instanceof Error) throw reply
    if (reply !== 'key') return { ...reply, waiting: 9 } as T
    return {
      workspace: this.workspace,
      curve: 'secp256k1',
      key_id: `s-${this.workspace.slice(4, 20)}`,
      public_key: PUBLIC,
      chain_code: CHAIN,
      epoch: 0,
      certificates: [1, 2, 3].map((each) => ({ node: each, signature: '' })),
    } as T
  }
  verify = (): boolean => true
}

class Clock {
  ms = 0
  readonly pauses: number[] = []
  now = (): number => this.ms
  sleep = async (ms: number): Promise<void> => {
    this.pauses.push(ms)
    this.ms += ms
  }
}

async function create(reply: (node: number, call: number) => Reply) {
  const name = `new-${randomUUID()}`
  const { id } = (await database
    .get()
    .one<{ id: string }>('insert into workspaces (id, name) values ($1, $2) returning id', [
      randomUUID(),
      name,
    ])) as { id: string }
  const [nodes, clock] = [new Nodes(name, reply), new Clock()]
  const open = () => new WorkspaceKeys(database.get(), nodes, 'local', clock)
  return { id, nodes, clock, open, keys: open() }
}

const away = (node: number) => new NodeUnavailable(node, 'cannot be reached')
const fails = (code: string, retryAfterS?: number) => (error: unknown) =>
  error instanceof ApiError && error.code === code && error.retryAfterS === retryAfterS

test('waits for the key of a new workspace while it has a place in the queue', async () => {
  const { id, nodes, clock, keys } = await create((_node, call) =>
    call < 4 ? { place: 12 - 4 * call } : 'key',
  )
  const key = await keys.get(id, 'secp256k1')
  assert.equal(Buffer.from(key.publicKey).toString('hex'), PUBLIC)
  assert.deepEqual(
    nodes.calls.map(({ node }) => node),
    [1, 1, 1, 1],
  )
  assert.deepEqual(clock.pauses, [2000, 1000, 250])
})

test('answers KEY_PENDING within 30 seconds, and the next call gets the key of the same place', async () => {
  let isReady = false
  const { id, nodes, clock, keys } = await create(() => (isReady ? 'key' : { place: 40 }))
  await assert.rejects(keys.get(id, 'secp256k1'), fails('KEY_PENDING', 40))
  assert.ok(clock.ms <= 30_000 && clock.ms >= 20_000, String(clock.ms))
  // No call may take longer than the rest of the time.
  assert.ok(nodes.calls.every(({ timeoutMs }) => timeoutMs <= 25_000))
  isReady = true
  const [first, second] = await Promise.all([1, 2].map(() => keys.get(id, 'secp256k1')))
  assert.deepEqual(first?.publicKey, second?.publicKey)
})

test('Retry-After is the place, but at most 60 seconds', async () => {
  const { id, keys } = await create(() => ({ place: 400 }))
  await assert.rejects(keys.get(id, 'secp256k1'), fails('KEY_PENDING', 60))
})

test('concurrent requests of a process call the nodes once, and several processes store one key', async () => {
  const { id, nodes, keys, open } = await create((_node, call) => (call < 3 ? { place: 1 } : 'key'))
  const other = open()
  const all = await Promise.all([
    ...Array.from({ length: 20 }, () => keys.get(id, 'secp256k1')),
    other.get(id, 'secp256k1'),
  ])
  assert.equal(new Set(all.map(({ publicKey }) => Buffer.from(publicKey).toString('hex'))).size, 1)
  assert.ok(nodes.calls.length <= 6, String(nodes.calls.length))
  const rows = await database
    .get()
    .query('select key_id from workspace_keys where workspace_id = $1', [id])
  assert.equal(rows.length, 1)
})

test('a full queue is KEY_PENDING, and is not requested from the other nodes', async () => {
  const { id, nodes, keys } = await create(
    () => new NodeRefused(1, 429, { error: 'TOO_BUSY', message: 'full' }),
  )
  await assert.rejects(keys.get(id, 'secp256k1'), fails('KEY_PENDING', 60))
  assert.equal(nodes.calls.length, 1)
})

test('fails without waiting if no node can assign a key', async () => {
  const { id, nodes, clock, keys } = await create((node) => away(node))
  await assert.rejects(keys.get(id, 'secp256k1'), fails('SIGNERS_UNAVAILABLE'))
  assert.deepEqual([nodes.calls.length, clock.ms], [3, 0])
})

test('continues to wait while nodes are away for a moment', async () => {
  const { id, clock, keys } = await create((node, call) =>
    call === 1 ? { place: 1 } : call < 5 ? away(node) : 'key',
  )
  await keys.get(id, 'secp256k1')
  assert.deepEqual(clock.pauses, [250, 250])
})

test('reports the nodes that stay away while a workspace waits', async () => {
  const { id, clock, keys } = await create((node, call) => (call === 1 ? { place: 1 } : away(node)))
  await assert.rejects(keys.get(id, 'secp256k1'), fails('SIGNERS_UNAVAILABLE'))
  assert.ok(clock.ms <= 30_000, String(clock.ms))
})
