import assert from 'node:assert/strict'
import { randomBytes, type KeyObject } from 'node:crypto'
import { after, before, test } from 'node:test'
import { decode, loadRegistry, signing, type UnsignedTransaction } from '@custody/chains'
import { hex, sha256hex, signBytes } from '../canonical.ts'
import { bindingBytes } from '../keys/certificate.ts'
import { State } from '../store/state.ts'
import { Attached, type Binding } from '../envelope.ts'
import { withRounds } from './rounds.ts'
import {
  ETH,
  eth,
  SignerCluster,
  pay,
  SINK_ETH,
  transfer,
  type Caller,
  type Json,
  type Workspace,
} from '../../testing/signer-cluster.ts'
import { TakenOver } from '../../testing/taken-over.ts'

/**
 * Node 1 is compromised: the test has its keys, its record and its port, and sends messages as node
 * 1. Node 2 is honest.
 */
let cluster: SignerCluster
let workspace: Workspace
let caller: Caller
let node1: TakenOver
let identity: KeyObject
let say: (call: string, body: unknown, binding?: Binding) => Promise<Json>
const ONE = 10n ** 18n
const path = [1, ETH.chain_index, 0]
const OTHER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'

before(async () => {
  cluster = await SignerCluster.start({ where: 'apart' })
  workspace = await cluster.workspace()
  caller = await workspace.caller()
  await workspace.caller(3)
  node1 = await TakenOver.start(cluster, 1)
  identity = node1.identity
  say = (call, body, binding) => node1.say(2, call, body, binding)
})
after(async () => {
  node1.stop()
  await cluster.stop()
})

const registry = loadRegistry('local')
function bindingOf(unsigned: UnsignedTransaction, more: Partial<Binding> = {}): Binding {
  const items = signing(registry, unsigned, workspace.publicKeyAt)
  return {
    session: '',
    round: 0,
    key: workspace.set.key_id,
    path: sha256hex(JSON.stringify(items.map((item) => item.path))),
    digest: sha256hex(JSON.stringify(items.map((item) => hex(item.message)))),
    participants: [1, 2],
    ...more,
  }
}
const open = async (purpose: unknown, unsigned: UnsignedTransaction, more: Partial<Binding> = {}) =>
  say(
    '/peer/sign/open',
    {
      order: { workspace: workspace.name, purpose, unsigned },
      fresh: randomBytes(32).toString('hex'),
      epoch: 0,
    },
    bindingOf(unsigned, more),
  )

test('the honest partner judges the whole order by itself', async () => {
  const request = await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  assert.equal(
    (await open(pay(request), eth(path, { value: ONE, to: OTHER }))).error,
    'DESTINATION_MISMATCH',
  )
  assert.equal((await open(pay(request), eth(path, { value: 2n * ONE }))).error, 'AMOUNT_MISMATCH')
  assert.equal(
    (
      await open(
        pay({ ...request, body: request.body.replace('1', '2') }),
        eth(path, { value: 2n * ONE }),
      )
    ).error,
    'NOT_AUTHENTIC',
  )
  assert.equal(
    (await open({ kind: 'drain', order: 'mine' }, eth([0, 60, 0], { value: ONE }))).error,
    'ORDER_UNKNOWN',
  )
  assert.equal((await open({ kind: 'anything' }, eth(path))).error, 'BAD_ORDER')
  assert.equal((await say('/peer/sign/open', {})).error, 'BAD_ORDER')
})

test('attack: a partner that tells a wrong clock, too much or nonsense uses up no other limit', async () => {
  const maxFeePerGas = BigInt(ETH.fee_cap) / 21_000n
  const sweep = (index: number, spending?: unknown) => {
    const unsigned = eth([3, ETH.chain_index, index], {
      to: workspace.address(ETH, [3, ETH.chain_index, 0]),
      value: maxFeePerGas * 21_000n,
      maxFeePerGas,
    })
    const purpose = { kind: 'sweep', sub_account: 3, asset: 'ETH', address_index: index }
    return say(
      '/peer/sign/open',
      {
        order: { workspace: workspace.name, purpose, unsigned },
        fresh: randomBytes(32).toString('hex'),
        epoch: 0,
        ...(spending === undefined ? {} : { spending }),
      },
      bindingOf(unsigned),
    )
  }
  const told = (more: object = {}) => ({
    clock: Date.now(),
    generation: 0,
    known: { generation: 0, height: 0 },
    from: 0,
    to: 0,
    steps: [],
    pending: [],
    ...more,
  })
  const huge = {
    step: 's',
    transaction: 't',
    charges: [
      {
        budget: State.budgetKey(workspace.name, 'ETH', 'sweep 3'),
        amount: (BigInt(ETH.fee_cap) * 1000n).toString(),
      },
    ],
  }
  for (const spending of [
    {},
    told({ more: 1 }),
    told({ pending: [{ ...huge, charges: [{ budget: 'b', amount: '-1' }] }] }),
    told({ steps: Array.from({ length: 201 }, () => ({ ...huge, height: 1, age_ms: 0 })) }),
  ])
    assert.equal((await sweep(1, spending)).error, 'BAD_ORDER')
  assert.equal((await sweep(1, told({ clock: Date.now() - 61_000 }))).error, 'CLOCK')
  assert.equal((await sweep(1, told({ pending: [huge] }))).error, 'BUDGET')
  // What it says is pending counts only for that order; what it says is on record remains.
  assert.equal(typeof (await sweep(1, told())).fresh, 'string')
  const steps = [{ ...huge, height: 7, age_ms: 1000 }]
  assert.equal((await sweep(2, told({ to: 7, steps }))).error, 'BUDGET')
  assert.equal((await sweep(2, told({ to: 7 }))).error, 'BUDGET')
  // The honest nodes do not count it between themselves.
  const answer = await workspace.sign(
    { kind: 'sweep', sub_account: 3, asset: 'ETH', address_index: 2 },
    eth([3, ETH.chain_index, 2], {
      to: workspace.address(ETH, [3, ETH.chain_index, 0]),
      value: maxFeePerGas * 21_000n,
      maxFeePerGas,
    }),
    [2, 3],
  )
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
})

test('the envelope must contain the digest that the partner computes', async () => {
  const request = await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  const good = eth(path, { value: ONE })
  for (const more of [
    { digest: sha256hex('x') },
    { path: sha256hex('x') },
    { key: 'other' },
    { participants: [1, 3] },
  ])
    assert.equal((await open(pay(request), good, more)).error, 'SESSION_ABORTED')
  assert.equal(decode(registry, good, workspace.publicKeyAt).asset, 'ETH')
})

test('a session accepts only its own round and digest, and ends without a ban on garbage', async () => {
  const request = await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH })
  const good = eth(path, { value: ONE })
  const fresh = randomBytes(32).toString('hex')
  const opened = await say(
    '/peer/sign/open',
    {
      order: { workspace: workspace.name, purpose: pay(request), unsigned: good },
      fresh,
      epoch: 0,
    },
    bindingOf(good),
  )
  assert.match(opened.fresh, /^[0-9a-f]{64}$/)
  // The answer includes node 2's first round.
  assert.equal(opened.messages.length, 1)
  const { sessionIds } = await import('./items.ts')
  const { hashOfUnsigned } = await import('@custody/request-auth/orders')
  const sessionOf = (theirs: string, mine: string) =>
    hex(
      sessionIds(
        {
          key: workspace.set.key_id,
          epoch: 0,
          participants: [1, 2],
          fresh: [mine, theirs],
          unsigned: hashOfUnsigned(good),
        },
        1,
      )[0]!,
    )
  const session = sessionOf(opened.fresh, fresh)
  const round = (
    binding: Binding,
    said: unknown = withRounds({ batch: 0 }, [[[Buffer.from('rubbish')]]]),
  ) => say('/peer/sign/round', said, binding)
  assert.equal(
    (await round(bindingOf(good, { session: sha256hex('no'), round: 1 }))).error,
    'SESSION_ABORTED',
  )
  assert.equal((await round(bindingOf(good, { session, round: 1 }))).error, 'SESSION_ABORTED')
  assert.equal((await round(bindingOf(good, { session, round: 2 }))).error, 'SESSION_ABORTED')
  // Each of these ends a session: a round that is not the next one, a round of another batch or
  // another digest, and lengths that do not match the bytes.
  const wrong: [Partial<Binding>, unknown?][] = [
    [{ round: 2 }],
    [{ round: 0 }],
    [{ digest: sha256hex('x') }],
    [{ participants: [1, 3] }],
    [{}, withRounds({ batch: 1 }, [[[Buffer.from('x')]]])],
    [{}, new Attached({ batch: 0, messages: [[[9]]] }, Buffer.from('short'))],
    [{}, new Attached({ batch: 0, messages: [[[1]]] }, Buffer.from('long'))],
  ]
  for (const [more, said] of wrong) {
    const mine = randomBytes(32).toString('hex')
    const again = await say(
      '/peer/sign/open',
      {
        order: { workspace: workspace.name, purpose: pay(request), unsigned: good },
        fresh: mine,
        epoch: 0,
      },
      bindingOf(good),
    )
    const name = sessionOf(again.fresh, mine)
    assert.equal(
      (await round(bindingOf(good, { session: name, round: 1, ...more }), said)).error,
      'SESSION_ABORTED',
    )
    const dead = await round(bindingOf(good, { session: name, round: 1 }))
    assert.deepEqual([dead.error, dead.message], ['SESSION_ABORTED', 'This session does not exist'])
  }
  assert.deepEqual((await cluster.get(2, '/status')).body.bans, [])
  // A session that ended early binds this node to nothing: another transaction of the request may be
  // opened, one at a time, and the request may be voided.
  const dearer = eth(path, { value: ONE, maxFeePerGas: 3_000_000_000n })
  assert.equal((await open(pay(request), dearer)).error, undefined)
  assert.equal((await open(pay(request), good)).error, 'TOO_BUSY')
  const { status, body } = await cluster.post(2, '/void', { request })
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal(body.unfinished, 0)
})

test('refuses a second name for an index and a second index for a name, from any node', async () => {
  const certify = (sub_account: string, index: number) =>
    say('/peer/sub-account/certify', { workspace: workspace.name, sub_account, index })
  assert.equal((await certify('stranger', caller.sub_account)).error, 'ENROLMENT_CONFLICT')
  assert.equal((await certify(`sub-${caller.sub_account}`, 77)).error, 'ENROLMENT_CONFLICT')
  assert.match(
    (await certify(`sub-${caller.sub_account}`, caller.sub_account)).signature,
    /^[0-9a-f]{128}$/,
  )
  const forged = [1, 2, 3].map((node) => ({
    node,
    signature: signBytes(
      identity,
      bindingBytes({ workspace: workspace.name, sub_account: 'fresh', index: 9, mode: 'local' }),
    ),
  }))
  assert.equal(
    (
      await say('/peer/sub-account/set', {
        workspace: workspace.name,
        sub_account: 'fresh',
        index: 9,
        certificates: forged,
      })
    ).error,
    'ENROLMENT_CONFLICT',
  )
})

test('refuses requests that try to obtain keys, certificates and refreshes', async () => {
  const other = await cluster.post(2, '/key', { workspace: 'another', curve: 'secp256k1' })
  assert.notEqual(other.status, 200)
  assert.equal(
    (
      await say('/peer/key/certify', {
        workspace: 'thief',
        curve: 'secp256k1',
        key_id: workspace.set.key_id,
      })
    ).error,
    'KEY_CONFLICT',
  )
  assert.equal(
    (
      await say('/peer/key/set', {
        workspace: 'thief',
        curve: 'secp256k1',
        key_id: workspace.set.key_id,
        certificates: workspace.set.certificates,
      })
    ).error,
    'KEY_CONFLICT',
  )
  const name = { key_id: workspace.set.key_id, epoch: 1, session: sha256hex('x') }
  for (const [call, body] of [
    ['refresh/commit', name],
    ['refresh/forget', name],
    ['refresh/pair', { ...name, partner: 3 }],
    ['test/open', { ...name, fresh: sha256hex('y') }],
    ['test/open', { ...name, epoch: 0, fresh: sha256hex('y') }],
  ] as const)
    assert.equal((await say(`/peer/${call}`, body)).error, 'KEY_CONFLICT', call)
  assert.equal(
    (
      await say('/peer/ceremony/start', {
        run: sha256hex('x'),
        fresh: [1, 2, 3].map((node) => ({ node, fresh: sha256hex(String(node)) })),
      })
    ).error,
    'SESSION_ABORTED',
  )
  assert.equal((await say('/peer/nothing', {})).error, 'NOT_FOUND')
  // The two other nodes continue to sign.
  const request = await transfer(caller, { asset: 'ETH', amount: 3, destination_address: SINK_ETH })
  const { status, body } = await workspace.sign(
    pay(request),
    eth(path, { value: 3n * ONE, nonce: 0 }),
    [2, 3],
  )
  assert.equal(status, 200, JSON.stringify(body))
})
