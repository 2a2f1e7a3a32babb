import { claimedNonceAndSubject, transactionId, type SignedRequest } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { createPublicKey, verify } from 'node:crypto'
import { after, before, test } from 'node:test'
import { ask, faster } from '../../testing/amending.ts'
import { TestPolicy } from '../../testing/policy-cluster.ts'
import { restartRestored } from '../../testing/restored-record.ts'
import {
  ETH,
  eth,
  pay,
  refused,
  signed,
  SignerCluster,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../../testing/signer-cluster.ts'
import { isHeldWord, type SignedHeldWord, type SignedInForceWord } from '../governance/word.ts'

/** Policies at three real nodes: what a platform or a thief of a caller's key can have signed. */
const ETHER = 10n ** 18n
const OTHER_ETH = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
] as const
const small = {
  id: 'small',
  effect: 'allow',
  match: {
    action: ['transfer'],
    assets: 'any',
    to: { addresses: [{ network: 'ETH', address: SINK_ETH }] },
  },
  amount: { max: { ETH: '0.5' } },
  windows: [{ name: 'day', hours: 24, per: 'sub_account', max: { ETH: '1.001' } }],
}
const large = {
  id: 'large',
  effect: 'allow',
  match: { action: ['transfer'], assets: ['ETH'] },
  amount: { max: { ETH: '10' }, min: { ETH: '0.6' } },
  approvals: [{ group: 'treasury', k: 2 }],
}

let cluster: SignerCluster
before(async () => {
  cluster = await SignerCluster.start({ engine: 'double' })
})
after(async () => {
  await cluster.stop()
})

interface Wallet {
  workspace: Workspace
  caller: Caller
  policy: TestPolicy
  /** Signs a payment of wei by the omnibus address, with its nonce. */
  send: (value: bigint, options?: Sending) => Promise<Answer>
  request: (value: bigint, to?: string) => ReturnType<typeof transfer>
}
interface Sending {
  to?: string
  nonce?: number
  pair?: readonly [number, number]
}

async function wallet(
  rules: readonly unknown[] = [small, large],
  isInstalled = true,
): Promise<Wallet> {
  const workspace = await cluster.workspace()
  const caller = await workspace.caller()
  const policy = new TestPolicy(cluster, workspace, rules, caller.api_key)
  if (isInstalled) await policy.install()
  const request = (value: bigint, to = SINK_ETH) =>
    transfer(caller, { asset: 'ETH', amount: amountOf(value), destination_address: to })
  let next = 0
  const send = async (value: bigint, { to = SINK_ETH, nonce, pair }: Sending = {}) => {
    const at = nonce ?? next
    const answer = await workspace.sign(
      pay(await request(value, to)),
      eth([1, ETH.chain_index, 0], { value, nonce: at, to }),
      pair,
    )
    if (answer.status === 200) next = Math.max(next, at + 1)
    return answer
  }
  return { workspace, caller, policy, send, request }
}
const speedUp = ({ api_key, sub_account }: Caller, { token }: SignedRequest, body = {}) =>
  ask(
    { api_key, sub_account },
    transactionId(api_key, claimedNonceAndSubject(token).nonce),
    'speed-up',
    body,
  )
const amountOf = (value: bigint): string => {
  const digits = value.toString().padStart(19, '0')
  return `${digits.slice(0, -18)}.${digits.slice(-18)}`
}

test('signs what a rule allows at every pair, and states why it refuses anything else', async () => {
  const { send } = await wallet()
  for (const pair of PAIRS) signed(await send(ETHER / 4n, { pair }))
  const above = await send((ETHER * 55n) / 100n)
  refused(above, 'POLICY_DENIED', 17)
  assert.match(
    above.body.message,
    /^The policy 1 does not allow the transaction; the nearest rule is "large": amount: 0.55 ETH is below 0.6$/,
  )
  assert.equal(above.body.policy, 1)
  refused(await send(ETHER / 4n, { to: OTHER_ETH }), 'POLICY_DENIED')
  const approvals = await send(ETHER, { to: OTHER_ETH })
  refused(approvals, 'POLICY_APPROVAL')
  assert.match(approvals.body.message, /missing: 2 of treasury$/)
  assert.deepEqual(approvals.body.needs, [{ group: 'treasury', k: 2, have: 0 }])
  const full = await send(ETHER / 2n)
  refused(full, 'POLICY_WINDOW')
  assert.match(
    full.body.message,
    /windows.day: 0.750126 of 1.001 ETH are used, and 0.500042 more do not fit/,
  )
  const frees = full.body.frees_at - Math.floor(Date.now() / 1000)
  assert.ok(frees > 86_000 && frees < 87_000, String(frees))
  signed(await send(ETHER / 4n))
})

test('each node signs a statement about the document that it holds', async () => {
  const { policy } = await wallet()
  for (const { node, identity } of cluster.peers.nodes) {
    const { body } = await cluster.post(node, '/policy', { workspace: policy.workspace })
    assert.equal(body.document, policy.first.document)
    assert.ok(body.api_keys.length > 0)
    const [word, ...others] = body.held as [SignedHeldWord]
    assert.deepEqual([word.node, word.hash, others.length], [node, policy.hash, 0])
    const key = createPublicKey(identity)
    assert.ok(isHeldWord(key, word))
    assert.ok(!isHeldWord(key, { ...word, acts_at: word.acts_at - 1 }))
  }
})

/** Returns whether a node signed these fields of a statement about the document in force. */
const isStated = (word: SignedInForceWord, tag = 'policy-in-force'): boolean =>
  isSigned(word, tag, word.signature)
/** Returns whether a node signed which stops apply. */
const isStopsStated = ({ stops, ...word }: SignedInForceWord): boolean =>
  isSigned(word, 'policy-stops', word.stops_signature, { stops })

function isSigned(
  { node, mode, nodes, workspace, number, hash, at }: Omit<SignedInForceWord, 'stops'>,
  tag: string,
  signature: string,
  more: object = {},
): boolean {
  const fields = { node, mode, nodes, workspace, number, hash, at, ...more }
  const text = `custody/${tag}/v1\n${JSON.stringify(fields)}`
  const { identity } = cluster.peers.nodes.find((each) => each.node === node)!
  return verify(null, Buffer.from(text), createPublicKey(identity), Buffer.from(signature, 'hex'))
}

test('each node states the document by which it signs, for one workspace, installation and time', async () => {
  const { policy } = await wallet()
  const { workspace, hash, document } = policy
  for (const { node } of cluster.peers.nodes) {
    const start = Math.floor(Date.now() / 1000)
    const { body } = await cluster.post(node, '/policy', { workspace })
    const word = body.in_force as SignedInForceWord
    const { mode, nodes } = document
    const { at, signature: _, stops_signature: _stops, ...fields } = word
    assert.deepEqual(fields, { node, mode, nodes, workspace, number: 1, hash, stops: [] })
    assert.ok(at >= start && at <= start + 60, String(at))
    assert.ok(isStated(word) && isStopsStated(word))
    assert.ok(!isStopsStated({ ...word, stops: [hash] }) && !isStopsStated({ ...word, at: at + 1 }))
    const others = { mode: 'mainnet', nodes: 'ab'.repeat(32), workspace: 'other', number: 2 }
    const changes: object[] = Object.entries(others).map(([key, value]) => ({ [key]: value }))
    for (const change of [
      ...changes,
      { at: at + 1 },
      { hash: 'cd'.repeat(32) },
      { node: (node % 3) + 1 },
    ])
      assert.ok(!isStated({ ...word, ...change }), JSON.stringify(change))
    assert.ok(!isStated(word, 'policy-held'))
  }
  const none = await cluster.workspace()
  const { body } = await cluster.post(1, '/policy', { workspace: none.name })
  assert.equal(body.in_force, null)
})

test('attack: pairs that sign at the same time do not exceed a window together', async () => {
  const { workspace, request, send } = await wallet()
  // All payments use the nonce 0, so that only the window can refuse one of them.
  const payments = await Promise.all(
    [...PAIRS, ...PAIRS].map(async (pair, at) => ({
      pair,
      purpose: pay(await request(ETHER / 2n)),
      unsigned: eth([1, ETH.chain_index, 0], {
        value: ETHER / 2n,
        maxFeePerGas: 2_000_000_000n + BigInt(at),
      }),
    })),
  )
  const done = new Set<number>()
  const attempt = async (at: number, codes: readonly string[]): Promise<void> => {
    const { pair, purpose, unsigned } = payments[at]!
    const { status, body } = await workspace.sign(purpose, unsigned, pair)
    if (status === 200) done.add(at)
    else assert.ok(codes.includes(body.error), JSON.stringify(body))
  }
  for (const round of [1, 2]) {
    await Promise.all(payments.map((_, at) => attempt(at, ['POLICY_WINDOW', 'TOO_BUSY'])))
    assert.ok(done.size <= 2, `${done.size} of 2 signed after round ${round}`)
  }
  // A step that a partner has recorded and its coordinator has refused uses up the window, so fewer
  // than two may be signed; but each pair signs its payments until the window is full for it.
  for (const at of payments.keys()) await attempt(at, ['POLICY_WINDOW'])
  for (const pair of PAIRS) refused(await send(ETHER / 10n, { pair }), 'POLICY_WINDOW')
  assert.ok(done.size <= 2, `${done.size} of 2 signed`)
  // The same payments are signed if none of them competes.
  const other = await wallet()
  for (const pair of PAIRS.slice(0, 2)) signed(await other.send(ETHER / 2n, { pair }))
})

test('attack: the speed-up of a denied payment is the payment, also if a node receives it first', async () => {
  const { workspace, caller, request, send } = await wallet()
  const denied = await request(ETHER / 4n, OTHER_ETH)
  const unsigned = eth([1, ETH.chain_index, 0], { value: ETHER / 4n, to: OTHER_ETH })
  refused(
    await workspace.sign(faster(denied, await speedUp(caller, denied)), unsigned),
    'POLICY_DENIED',
  )
  // The speed-up of an allowed payment is charged once.
  const first = await request(ETHER / 2n)
  const at = (maxFeePerGas: bigint) =>
    eth([1, ETH.chain_index, 0], { value: ETHER / 2n, maxFeePerGas })
  signed(await workspace.sign(pay(first), at(2_000_000_000n)))
  const speed_up = { request: await speedUp(caller, first, { fee_level: 'high' }) }
  signed(
    await workspace.sign({ kind: 'pay', request: first, speed_up }, at(4_000_000_000n), [2, 3]),
  )
  signed(await send(ETHER / 2n, { nonce: 1, pair: [3, 1] }))
  refused(await send(ETHER / 10n, { nonce: 2 }), 'POLICY_WINDOW')
})

test('attack: naming a rule that does not fit, or that does not exist, signs nothing', async () => {
  const { workspace, request } = await wallet()
  for (const via of ['large', 'other']) {
    const answer = await cluster.post(1, '/sign', {
      workspace: workspace.name,
      purpose: pay(await request(ETHER / 4n)),
      unsigned: eth([1, ETH.chain_index, 0], { value: ETHER / 4n }),
      partner: 2,
      policy: { via },
    })
    refused(answer, 'POLICY_DENIED')
  }
})

test('a stop that one node has seen holds at all nodes, also for what is on record, until its end', async () => {
  const { workspace, policy, request, send } = await wallet()
  const first = await request(ETHER / 4n)
  const unsigned = eth([1, ETH.chain_index, 0], { value: ETHER / 4n })
  const before = await workspace.sign(pay(first), unsigned)
  signed(before)
  refused(await policy.present(2, policy.stop('dan')), 'BAD_POLICY')
  const stop = policy.stop('carol')
  const presented = await policy.present(2, stop)
  signed(presented)
  assert.deepEqual([presented.body.is_new, presented.body.told], [true, [1, 3]])
  for (const pair of PAIRS) {
    const answer = await send(ETHER / 4n, { nonce: 1, pair })
    refused(answer, 'POLICY_STOPPED')
    assert.match(answer.body.message, /^carol has stopped the workspace/)
    refused(await workspace.sign(pay(first), unsigned, pair), 'POLICY_STOPPED')
  }
  const hash = presented.body.stops[0].hash
  for (const node of [1, 2, 3]) {
    const { body } = await cluster.post(node, '/policy', { workspace: workspace.name })
    assert.deepEqual(body.in_force.stops, [hash])
    assert.ok(isStopsStated(body.in_force as SignedInForceWord))
  }
  const alone = { kind: 'resumed', workspace: workspace.name, stop, approvals: [] }
  refused(await cluster.post(3, '/policy/present', { item: alone }), 'BAD_POLICY')
  signed(await policy.resume(3, stop, hash))
  assert.deepEqual((await workspace.sign(pay(first), unsigned)).body, before.body)
  for (const [nonce, pair] of PAIRS.entries())
    signed(await send(ETHER / 4n, { nonce: nonce + 1, pair }))
  // The same stop cannot be presented again.
  refused(await policy.present(1, stop), 'BAD_POLICY')
})

test('a stop of a sub-account leaves the others and other workspaces alone', async () => {
  const { workspace, policy, send } = await wallet()
  const other = await workspace.caller(2)
  signed(await policy.present(1, policy.stop('carol', 'sub-1')))
  refused(await send(ETHER / 4n), 'POLICY_STOPPED')
  const request = await transfer(other, {
    asset: 'ETH',
    amount: '0.1',
    destination_address: SINK_ETH,
  })
  signed(await workspace.sign(pay(request), eth([2, ETH.chain_index, 0], { value: ETHER / 10n })))
  const second = await wallet([small], false)
  signed(await second.send(ETHER))
})

test('a document of another installation, with a fault or without a proof is refused and not recorded', async () => {
  const { policy, send } = await wallet([small], false)
  const height = async () => (await cluster.get(1, '/status')).body.record.height as number
  const start = await height()
  const tries: [object, string, string][] = [
    [{ possessions: policy.first.possessions.slice(1) }, 'BAD_POLICY', 'POSSESSION'],
    [
      { document: policy.first.document.replace(/"nodes":"../, '"nodes":"00') },
      'BAD_POLICY',
      'OTHER_WORKSPACE',
    ],
    [{ workspace: 'another' }, 'BAD_POLICY', 'OTHER_WORKSPACE'],
    [{ document: '{}' }, 'BAD_POLICY', 'SHAPE'],
    [{ document: 'no JSON' }, 'BAD_POLICY', 'FORMAT'],
    [{ possessions: ['{}'] }, 'BAD_POLICY', 'SHAPE'],
  ]
  for (const [change, code, inner] of tries) {
    const answer = await cluster.operator(1, 'policy-install', { ...policy.first, ...change })
    refused(answer, code)
    assert.equal(answer.body.code, inner, JSON.stringify(answer.body))
  }
  refused(await cluster.operator(1, 'policy-install', { ...policy.first, extra: 1 }), 'BAD_ORDER')
  for (const kind of ['first', 'confirmed']) {
    const item =
      kind === 'first'
        ? { kind, ...policy.first }
        : { kind, workspace: policy.workspace, hash: policy.hash }
    refused(await cluster.post(1, '/policy/present', { item }), 'NOT_ALLOWED')
  }
  assert.equal(await height(), start)
  // One node alone puts nothing in force.
  signed(await cluster.operator(1, 'policy-install', policy.first))
  signed(await send(ETHER))
})

test('a restarted node signs under the same policy without one of its peers, and a restored node after its operator’s decision', async () => {
  const { policy, send } = await wallet()
  signed(await send(ETHER / 4n))
  await cluster.restartHere(2)
  signed(await send(ETHER / 4n, { pair: [2, 3] }))
  refused(await send((ETHER * 55n) / 100n), 'POLICY_DENIED')
  await cluster.stopHere(3)
  await cluster.restartHere(2)
  signed(await send(ETHER / 4n, { pair: [2, 1] }))
  await restartRestored(cluster, 2)
  const answer = await send(ETHER / 16n, { pair: [2, 1] as const })
  refused(answer, 'POLICY_BEHIND')
  assert.equal(answer.body.node, 3)
  const statement = async () =>
    (await cluster.post(2, '/policy', { workspace: policy.workspace })).body.in_force
  assert.equal(await statement(), null, 'a node that may have missed a change states nothing')
  const body = { workspace: policy.workspace, hash: policy.hash }
  refused(
    await cluster.operator(2, 'policy-accept', { ...body, hash: '0'.repeat(64) }),
    'BAD_POLICY',
  )
  signed(await cluster.operator(2, 'policy-accept', body))
  assert.equal((await statement())?.hash, policy.hash)
  signed(await send(ETHER / 16n, { pair: [2, 1] }))
  await cluster.restartHere(2)
  signed(await send(ETHER / 16n, { pair: [2, 1] }))
  await cluster.restartHere(3)
})

test('a node follows both peers only to the document that they have in force', async () => {
  const { policy, send } = await wallet()
  const body = { workspace: policy.workspace, hash: policy.hash }
  const other = await cluster.operator(1, 'policy-follow', { ...body, hash: '0'.repeat(64) })
  refused(other, 'BAD_POLICY')
  assert.deepEqual([other.body.code, other.body.field], ['OTHER_POLICY', 'hash'])
  refused(await cluster.operator(1, 'policy-follow', { ...body, hash: 'x' }), 'BAD_ORDER')
  const same = await cluster.operator(1, 'policy-follow', body)
  assert.deepEqual([same.status, same.body.is_new, same.body.hash], [200, false, policy.hash])
  await cluster.stopHere(3)
  refused(await cluster.operator(1, 'policy-follow', body), 'PEER_UNAVAILABLE')
  await cluster.restartHere(3)
  signed(await send(ETHER / 4n))
})

test('operators remove a policy at all nodes, after which nothing limits a transfer', async () => {
  const { policy, send } = await wallet()
  refused(await send(ETHER), 'POLICY_APPROVAL')
  const { workspace } = policy
  for (const node of [1, 2, 3]) {
    const answer = await cluster.operator(node, 'policy-uninstall', { workspace })
    assert.deepEqual([answer.status, answer.body.is_new, answer.body.hash], [200, true, null])
  }
  signed(await send(ETHER))
  assert.equal((await cluster.operator(1, 'policy-uninstall', { workspace })).body.is_new, false)
})

test('a judgement in advance counts what the peers have signed with each other', async () => {
  const { send, request } = await wallet([small, { ...large, amount: { max: { ETH: '10' } } }])
  const [third, fifth] = [(ETHER * 3n) / 10n, ETHER / 5n]
  for (const pair of PAIRS) signed(await send(third, { pair }))
  // Each node alone has signed two of the three. A pair has signed all of them.
  refused(await send(fifth, { pair: [1, 2] }), 'POLICY_WINDOW')
  const body = { request: await request(fifth) }
  const answers = await Promise.all(
    [1, 2, 3].map((node) => cluster.post(node, '/policy/judge', body)),
  )
  const codes = answers.map((answer) => answer.body.refusal?.code)
  assert.ok(
    codes.filter((code) => code === 'POLICY_APPROVAL').length >= 2,
    `two nodes agree that it needs approvals: ${codes.join()}`,
  )
})
