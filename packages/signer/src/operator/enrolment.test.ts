import assert from 'node:assert/strict'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { SubAccounts } from '../enrolment/sub-accounts.ts'
import type { Header } from '../envelope.ts'
import { Store } from '../store/index.ts'
import type { PeerHandler } from '../transport/peers.ts'
import { canonicalPublicKey } from '@custody/request-auth'
import { keyWithLines } from '../../../request-auth/testing/support.ts'
import { callerPem, SignerCluster, type Json } from '../../testing/signer-cluster.ts'

/**
 * Rule 1: all three nodes bind a sub-account's name and index, unique in both directions and
 * permanently.
 */
let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({ where: 'apart' })
})
after(async () => {
  await cluster.stop()
})

const enrolment = (workspace: string, sub_account: string, more: Record<string, unknown> = {}) => ({
  api_key: randomUUID(),
  public_key_pem: callerPem,
  role: 'full',
  workspace,
  sub_account,
  ...more,
})

test('all nodes return the same index for a name, and no two names of a workspace share it', async () => {
  const indexes = new Map<string, number>()
  for (const name of ['treasury', 'payouts', 'treasury', 'käse und brot']) {
    const answers = await cluster.everywhere('enrol', enrolment('acme', name))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
      JSON.stringify(answers),
    )
    const [index, ...others] = answers.map(({ body }) => body.sub_account_index as number)
    assert.deepEqual(others, [index, index])
    assert.equal(indexes.get(name) ?? index, index)
    indexes.set(name, index!)
    assert.equal(
      new Set(answers.map(({ body }) => JSON.stringify(body.identities))).size,
      1,
      'all pin the same identities',
    )
  }
  assert.equal(new Set(indexes.values()).size, 3)
  // The indices of another workspace are counted separately.
  assert.equal(
    (await cluster.operator(1, 'enrol', enrolment('other', 'treasury'))).body.sub_account_index,
    1,
  )
})

test('stores a key in one encoding, whatever its file contained', async () => {
  const wanted = enrolment('acme', 'spelt', {
    public_key_pem: keyWithLines(callerPem, ['PEM', 'pwned']),
  })
  const { body: first } = await cluster.operator(1, 'enrol', wanted)
  assert.deepEqual([first.enrolled, first.new], [true, true], JSON.stringify(first))
  const { body: enrolled } = await cluster.operator(1, 'enrolment', { api_key: wanted.api_key })
  assert.equal(enrolled.public_key_pem, canonicalPublicKey(wanted.public_key_pem))
  const { body: again } = await cluster.operator(1, 'enrol', {
    ...wanted,
    public_key_pem: `${enrolled.public_key_pem}\n`,
  })
  assert.deepEqual([again.enrolled, again.new], [true, false], JSON.stringify(again))
})

test('sub-accounts that are named concurrently at every node get different indices', async () => {
  const names = Array.from({ length: 12 }, (_, at) => `desk ${at}`)
  const answers = await Promise.all(
    names.map((name) => cluster.everywhere('enrol', enrolment('crowded', name))),
  )
  assert.deepEqual(
    [...new Set(answers.flat().map(({ status }) => status))],
    [200],
    JSON.stringify(answers),
  )
  const indexes = answers.map((each) => new Set(each.map(({ body }) => body.sub_account_index)))
  for (const each of indexes) assert.equal(each.size, 1)
  assert.deepEqual(
    indexes.flatMap((each) => [...each]).sort((a, b) => a - b),
    names.map((_, at) => at + 1),
  )
})

test('two sub-accounts get different indices even if responses arrive simultaneously', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'custody-sub-accounts-'))
  const pairs = [1, 2, 3].map(() => generateKeyPairSync('ed25519'))
  const identities = new Map(pairs.map(({ publicKey }, at) => [at + 1, publicKey]))
  const handlers = new Map<string, PeerHandler>()
  const stores: Store[] = []
  let moment: Promise<void> | undefined
  const nodes = [1, 2, 3].map((node) => {
    const store = new Store(join(folder, `${node}.sqlite`), () => 0)
    stores.push(store)
    const peers = {
      nodes: [1, 2, 3].filter((other) => other !== node),
      handle: (call: string, handler: PeerHandler) => void handlers.set(`${node} ${call}`, handler),
      // Each answer that is ready is delivered immediately.
      call: async (to: number, call: string, body: unknown) => {
        const answer = await handlers.get(`${to} ${call}`)!(
          node,
          body,
          {} as Header,
          Buffer.alloc(0),
        )
        await (moment ??= new Promise((resolve) =>
          setImmediate(() => {
            moment = undefined
            resolve()
          }),
        ))
        return answer
      },
    }
    const config = {
      node,
      mode: 'local',
      identity: pairs[node - 1]!.privateKey,
      timeouts_ms: { round: 1000, keygen: 1000 },
    }
    return new SubAccounts({ config, store, peers, identities } as unknown as ConstructorParameters<
      typeof SubAccounts
    >[0])
  })
  try {
    const bound = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name, at) => nodes[at % 3]!.bind('crowded', name)),
    )
    assert.deepEqual(bound.sort(), [1, 2, 3, 4])
  } finally {
    for (const store of stores) store.close()
    rmSync(folder, { recursive: true })
  }
})

test('attack: refuses a foreign key with the index of an existing sub-account', async () => {
  const [{ body }] = (await cluster.everywhere('enrol', enrolment('bank', 'treasury'))) as [
    Json,
    Json,
    Json,
  ]
  const stranger = enrolment('bank', 'stranger', { index: body.sub_account_index })
  for (const node of [1, 2, 3]) {
    const refused = await cluster.operator(node, 'enrol', stranger)
    assert.equal(refused.body.error, 'ENROLMENT_CONFLICT', JSON.stringify(refused.body))
  }
  const moved = await cluster.operator(
    2,
    'enrol',
    enrolment('bank', 'treasury', { index: body.sub_account_index + 5 }),
  )
  assert.equal(moved.body.error, 'ENROLMENT_CONFLICT')
})

test('enrolling a new sub-account needs all three nodes, and a known one does not', async () => {
  await cluster.everywhere('enrol', enrolment('late', 'known'))
  await cluster.kill(3)
  const refused = await cluster.operator(2, 'enrol', enrolment('late', 'new'))
  assert.equal(refused.status, 503)
  assert.match(refused.body.message, /all three nodes must be running/)
  const { status, body } = await cluster.operator(2, 'enrol', enrolment('late', 'known'))
  assert.deepEqual([status, body.new], [200, true])
  await cluster.run(3)
  for (const node of [1, 2, 3])
    assert.equal((await cluster.operator(node, 'enrol', enrolment('late', 'new'))).status, 200)
})

test('a node that was down when a key was enrolled stores its revocation', async () => {
  await cluster.everywhere('enrol', enrolment('gone', 'main'))
  const key = enrolment('gone', 'main')
  assert.equal((await cluster.operator(1, 'enrol', key)).status, 200)
  const [first, second] = await cluster.everywhere('revoke', { api_key: key.api_key })
  assert.deepEqual([first!.body.known, second!.body.known], [true, false])
  assert.deepEqual(
    [first!.body.workspace, first!.body.sub_account, first!.body.role],
    ['gone', 'main', 'full'],
  )
  await cluster.restart(2)
  for (const node of [1, 2, 3])
    assert.equal((await cluster.operator(node, 'enrol', key)).body.error, 'ENROLMENT_CONFLICT')
})
