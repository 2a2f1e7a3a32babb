// Processes of nodes that are killed under a policy: what is on their disks is sufficient.
import { canonicalText, checkDocument, documentHash } from '@custody/policy'
import { signRequest, type SignedRequest } from '@custody/request-auth'
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { recoverTransactionAddress } from 'viem'
import { HeldLink, MOMENTS } from '../testing/held-link.ts'
import { TestPolicy } from '../testing/policy-cluster.ts'
import {
  callerKey,
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
  type Json,
  type Workspace,
} from '../testing/signer-cluster.ts'

const ETHER = 10n ** 18n
const HOUR_S = 3600
const NODES = [1, 2, 3]
const PATH = [1, ETH.chain_index, 0]
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
] as const
const match = { action: ['transfer'], assets: 'any', to: 'any' }
const small = {
  id: 'small',
  effect: 'allow',
  match,
  amount: { max: { ETH: '0.5' } },
  windows: [{ name: 'day', hours: 24, per: 'sub_account', max: { ETH: '1.001' } }],
}
const large = {
  id: 'large',
  effect: 'allow',
  match,
  amount: { min: { ETH: '2' } },
  approvals: [{ group: 'treasury', k: 2 }],
}
const forwards = {
  id: 'forwards',
  effect: 'allow',
  match: { action: ['forward'], assets: 'any' },
  approvals: [{ group: 'treasury', k: 2 }],
}
const change = { approvals: [{ group: 'admins', k: 2 }], delay_s: HOUR_S, veto: 'admins' }

let cluster: SignerCluster
/** Connection from node 1 to node 2. */
let link: HeldLink
before(async () => {
  link = await HeldLink.start()
  cluster = await SignerCluster.start({
    edit: ({ node, peers }: Json) => {
      if (node !== 1) return
      const partner = peers.find((peer: Json) => peer.node === 2)
      link.target = partner.port
      partner.port = link.port
    },
    where: 'apart',
  })
})
after(async () => {
  await cluster.stop()
  link.close()
})

const kill = async (nodes: readonly number[]): Promise<void> => {
  await Promise.all(nodes.map((node) => cluster.kill(node)))
}
const start = async (nodes: readonly number[]): Promise<void> => {
  await Promise.all(nodes.map((node) => cluster.run(node)))
}
const amountOf = (value: bigint): string => {
  const digits = value.toString().padStart(19, '0')
  return `${digits.slice(0, -18)}.${digits.slice(-18)}`
}
const nowS = (): number => Math.floor((Date.now() + cluster.aheadMs) / 1000)

interface Sending {
  request: SignedRequest
  value: bigint
  nonce: number
  pair?: readonly [number, number]
  approvals?: readonly object[]
}

class Wallet {
  readonly workspace: Workspace
  readonly policy: TestPolicy
  readonly #caller: Caller
  #nonce = 0

  private constructor(workspace: Workspace, policy: TestPolicy, caller: Caller) {
    this.workspace = workspace
    this.policy = policy
    this.#caller = caller
  }

  static async start(rules: readonly unknown[]): Promise<Wallet> {
    const workspace = await cluster.workspace()
    const caller = await workspace.caller()
    const policy = new TestPolicy(cluster, workspace, rules, caller.api_key, { change })
    await policy.install()
    return new Wallet(workspace, policy, caller)
  }

  request(value: bigint): Promise<SignedRequest> {
    const body = { asset: 'ETH', amount: amountOf(value), destination_address: SINK_ETH }
    return transfer(this.#caller, body, { now: nowS() })
  }

  order({ request, value, nonce, pair: [node, partner] = [1, 2], approvals }: Sending) {
    return cluster.post(node, '/sign', {
      workspace: this.workspace.name,
      purpose: pay(request),
      unsigned: eth(PATH, { value, nonce }),
      partner,
      ...(approvals ? { policy: { approvals } } : {}),
    })
  }

  /** Requests a payment with the next nonce. */
  async send(value: bigint, pair?: Sending['pair']): Promise<Answer> {
    const request = await this.request(value)
    const answer = await this.order({ request, value, nonce: this.#nonce, pair: pair ?? [1, 2] })
    if (answer.status === 200) this.#nonce++
    return answer
  }

  takeNonce(): number {
    return this.#nonce++
  }

  /** Creates a forwarding rule, which all nodes receive. */
  async rule(): Promise<SignedRequest> {
    const expires_at = new Date((nowS() + 30 * 24 * HOUR_S) * 1000).toISOString()
    const request = await signRequest({
      apiKey: this.#caller.api_key,
      privateKey: callerKey,
      method: 'POST',
      uri: '/dac/v1/auto-forwarding',
      body: JSON.stringify({
        asset: 'ETH',
        min_amount: '1',
        daily_cap: '100',
        destination_address: SINK_ETH,
        expires_at,
      }),
    })
    for (const node of NODES) signed(await cluster.post(node, '/receipt', { request }))
    return request
  }

  async forward(rule: SignedRequest, pair: readonly [number, number] = [1, 2]): Promise<Answer> {
    const answer = await cluster.post(pair[0], '/sign', {
      workspace: this.workspace.name,
      purpose: { kind: 'forward', id: randomUUID(), rule },
      unsigned: eth(PATH, { value: ETHER, nonce: this.#nonce }),
      partner: pair[1],
    })
    if (answer.status === 200) this.#nonce++
    return answer
  }

  async shown(request: SignedRequest): Promise<Json> {
    const answer = await cluster.post(1, '/policy/judge', { request })
    signed(answer)
    return answer.body.statement
  }

  async view(node: number): Promise<Json> {
    const answer = await cluster.post(node, '/policy', { workspace: this.workspace.name })
    signed(answer)
    return answer.body
  }
}

test('approvals on record and charges of windows remain after all nodes were killed', async () => {
  const wallet = await Wallet.start([small, large, forwards])
  const { policy } = wallet
  const half = { request: await wallet.request(ETHER / 2n), value: ETHER / 2n }
  const first = { ...half, nonce: wallet.takeNonce() }
  const before = await wallet.order(first)
  signed(before)
  const held = { request: await wallet.request(2n * ETHER), value: 2n * ETHER, nonce: 1 }
  const approvals = ['dan', 'erin'].map(async (by) =>
    policy.decide(by, await wallet.shown(held.request)),
  )
  refused(await wallet.order(held), 'POLICY_APPROVAL')
  const rule = await wallet.rule()
  const shown = await wallet.shown(rule)
  refused(await wallet.forward(rule), 'POLICY_APPROVAL')
  // Only node 3 receives the approvals of the rule, and then is killed too.
  await kill([1, 2])
  const at = nowS()
  const times = { kind: 'approval', decision: 'approve', at, expires: at + HOUR_S }
  const item = {
    kind: 'approved',
    workspace: policy.workspace,
    approvals: ['dan', 'erin'].map((by) => policy.statement(by, { ...shown, ...times })),
  }
  const presented = await cluster.post(3, '/policy/present', { item })
  signed(presented)
  assert.deepEqual([presented.body.is_new, presented.body.told], [true, []])
  await kill([3])
  await start(NODES)
  refused(await wallet.order(held), 'POLICY_APPROVAL')
  signed(await wallet.order({ ...held, approvals: await Promise.all(approvals) }))
  wallet.takeNonce()
  for (const pair of PAIRS) signed(await wallet.forward(rule, pair))
  assert.deepEqual((await wallet.order(first)).body, before.body)
  signed(await wallet.send(ETHER / 2n, [2, 3]))
  for (const pair of PAIRS) refused(await wallet.send(ETHER / 100n, pair), 'POLICY_WINDOW')
})

test('a payment during whose signature nodes are killed is signed once, and charged once', async () => {
  const wallet = await Wallet.start([small])
  const victims = { opened: [1, 2], round: [1], answered: [2], finished: [1] } as const
  const refusals = {
    opened: 'NONCE_GAP',
    round: 'TOO_BUSY',
    answered: 'NOT_EXCLUSIVE',
    finished: 'NOT_EXCLUSIVE',
  } as const
  const from = wallet.workspace.address(ETH, PATH)
  for (const moment of MOMENTS) {
    const value = ETHER / 4n
    const order = { request: await wallet.request(value), value, nonce: wallet.takeNonce() }
    const reached = link.holdAt(moment)
    const answer = wallet.order(order).catch(() => null)
    await reached
    await kill(victims[moment])
    link.release()
    assert.notEqual((await answer)?.status, 200, moment)
    await start(victims[moment])
    // A partner that has sent its last message has recorded the transaction, so it signs no other one for
    // the same request. Before that nothing is recorded, but its session is open until it ends.
    const other = { ...order, nonce: order.nonce + 1, pair: [2, 3] as const }
    refused(await wallet.order(other), refusals[moment])
    const done = await wallet.order(order)
    signed(done)
    const serializedTransaction = `0x${done.body.signed.raw}` as never
    assert.equal(await recoverTransactionAddress({ serializedTransaction }), from)
    assert.deepEqual((await wallet.order(order)).body, done.body)
    refused(await wallet.order(other), 'NOT_EXCLUSIVE')
  }
  // Four quarters fill the window of 1 ETH exactly.
  for (const pair of PAIRS) refused(await wallet.send(ETHER / 100n, pair), 'POLICY_WINDOW')
})

test('a stop and a pending change remain after a kill, and the change takes effect at its time', async () => {
  const wallet = await Wallet.start([small])
  const { policy, workspace } = wallet
  signed(await wallet.send(ETHER / 2n))
  const tenth = { ...small, amount: { max: { ETH: '0.1' } } }
  const next = { ...policy.document, number: 2, previous: policy.hash, rules: [tenth] }
  const document = checkDocument(next)
  const hash = documentHash(document)
  const statement = {
    kind: 'change',
    policy: { number: 1, hash: policy.hash },
    next: { number: 2, hash },
    acts_at: nowS() + HOUR_S,
  }
  const item = {
    kind: 'change',
    workspace: workspace.name,
    document: canonicalText(document),
    possessions: [],
    approvals: ['alice', 'bob'].map((by) => policy.statement(by, statement)),
  }
  // Only node 2 receives the change and the stop, and then is killed too.
  await kill([1, 3])
  signed(await cluster.post(2, '/policy/present', { item }))
  const stop = policy.stop('carol')
  const stopped = await policy.present(2, stop)
  signed(stopped)
  const { next: pending } = await wallet.view(2)
  await kill([2])
  await start(NODES)
  for (const pair of PAIRS) refused(await wallet.send(ETHER / 4n, pair), 'POLICY_STOPPED')
  for (const node of NODES) {
    const view = await wallet.view(node)
    assert.deepEqual([view.hash, view.next.hash, view.stops.length], [policy.hash, hash, 1])
  }
  const again = await wallet.view(2)
  assert.deepEqual([again.next, again.stops], [pending, stopped.body.stops])
  signed(await policy.resume(3, stop, stopped.body.stops[0].hash))
  signed(await wallet.send(ETHER / 4n, [3, 1]))
  // The nodes start from the same disks after the delay, with later clocks in this process.
  await kill(NODES)
  cluster.aheadMs = (HOUR_S + 600) * 1000
  for (const node of NODES) await cluster.restartHere(node)
  refused(await wallet.send(ETHER / 4n), 'POLICY_DENIED')
  for (const node of NODES) assert.equal((await wallet.view(node)).hash, hash)
  for (const pair of PAIRS.slice(0, 2)) signed(await wallet.send(ETHER / 10n, pair))
  for (const pair of PAIRS) refused(await wallet.send(ETHER / 10n, pair), 'POLICY_WINDOW')
})
