// What the platform concludes from what nodes answer to an order, and to its withdrawal.
import assert from 'node:assert/strict'
import { generateKeyPairSync, sign, verify } from 'node:crypto'
import { test } from 'node:test'
import { hashOfUnsigned } from '@custody/request-auth/orders'
import { systemEnvironment } from '../environment.ts'
import { createMetrics } from '../metrics.ts'
import { NodeRefused, NodeUnavailable } from './nodes.ts'
import { signOrder, type Assemble, type SignOrder, type SignOutcome } from './sign.ts'
import type { Signing } from './signing.ts'

const unsigned = { network: 'ETH', bytes: '02aa', inputs: [{ path: [1, 60, 0] }] }
const HASH = hashOfUnsigned(unsigned)
const ORDER = { workspace: 'acme', purpose: {}, unsigned } as unknown as SignOrder
const KEYS = new Map([1, 2, 3].map((node) => [node, generateKeyPairSync('ed25519')]))
const ACCOUNTS = Array.from({ length: 20 }, (_, at) => `account ${at}`)

/** A leader's answer to an order: signatures, a refusal, or none. */
type Answer =
  | 'signed'
  | 'wrong'
  | 'garbage'
  | { error: string; node?: number }
  | 'not sent'
  | 'no answer'
const SIGNATURE = { signature: 'cd'.repeat(64), recovery_id: 0 }
const SIGNED = { network: 'ETH', raw: 'ff', hash: 'ee' }
/** Accepts {@link SIGNATURE} only. */
const assembled: Assemble = (_unsigned, [made]) => {
  if (Buffer.from(made!.signature).toString('hex') !== SIGNATURE.signature)
    throw new Error('the signature does not verify')
  return SIGNED
}
/** What a node states about a withdrawn order; null: nothing. */
type Statement = {
  signed?: string[]
  complete_since?: number
  hashes?: string[]
  by?: number
} | null

/** Asks nodes for a signature. @returns the outcome and the pairs that were asked */
async function outcomeOf(
  account: string,
  answers: (leader: number, partner: number) => Answer,
  states: (node: number) => Statement = () => ({}),
): Promise<{ outcome: SignOutcome; pairs: [number, number][]; disputes: string }> {
  const pairs: [number, number][] = []
  const metrics = createMetrics()
  const call = async (
    node: number,
    _method: string,
    path: string,
    body: Record<string, unknown>,
  ) => {
    if (path === '/status') return {}
    if (path === '/withdraw') return statementOf(node, body, states(node))
    const partner = body['partner'] as number
    pairs.push([node, partner])
    const answer = answers(node, partner)
    if (answer === 'signed') return { signatures: [SIGNATURE] }
    if (answer === 'garbage') return { signatures: 'none' }
    if (answer === 'wrong') return { signatures: [{ ...SIGNATURE, signature: 'ab'.repeat(64) }] }
    if (answer === 'no answer') throw new NodeUnavailable(node, 'no response')
    if (answer === 'not sent') throw new NodeUnavailable(node, 'is away', null, false)
    throw new NodeRefused(node, 409, { ...answer, message: 'refused' })
  }
  const signers = {
    peers: [{ node: 1 }, { node: 2 }, { node: 3 }],
    isPenalised: () => false,
    penalise: () => undefined,
    verify: (node: number, text: string, signature: string) =>
      verify(null, Buffer.from(text), KEYS.get(node)!.publicKey, Buffer.from(signature, 'hex')),
    call,
  }
  const log = { error: () => {} }
  const services = { signers, environment: systemEnvironment(), metrics, log }
  const outcome = await signOrder(services as unknown as Signing, ORDER, account, assembled)
  return {
    outcome,
    pairs,
    disputes: await metrics.disputedRefusals
      .get()
      .then(({ values }) =>
        values.map(({ labels, value }) => `${labels['node']}: ${value}`).join(),
      ),
  }
}

function statementOf(node: number, body: Record<string, unknown>, stated: Statement): unknown {
  if (stated === null) throw new NodeUnavailable(node, 'no response')
  const { hashes = [HASH], signed = [], complete_since = 0, by = node } = stated
  const statement = { node, hashes, until: body['until'], signed, complete_since }
  const text = `custody/order-withdrawn/v1\n${JSON.stringify(statement)}`
  const signature = sign(null, Buffer.from(text), KEYS.get(by)!.privateKey).toString('hex')
  return { statement, signature }
}

const GAP = () => ({ error: 'NONCE_GAP' })
/** Checks whether orders that failed can still be signed, for accounts whose pairs differ. */
async function assertEach(
  expected: { isUntouched: boolean; isUnsigned: boolean },
  answers: Parameters<typeof outcomeOf>[1],
  states: Parameters<typeof outcomeOf>[2],
): Promise<void> {
  for (const account of ACCOUNTS) {
    const { outcome } = await outcomeOf(account, answers, states)
    assert.equal(outcome.kind, 'unavailable')
    const { isUntouched, isUnsigned } = outcome as Extract<SignOutcome, { kind: 'unavailable' }>
    assert.deepEqual({ isUntouched, isUnsigned }, expected, account)
  }
}
const NEITHER = { isUntouched: false, isUnsigned: false }
const BOTH = { isUntouched: true, isUnsigned: true }

test('orders that all nodes state not to have signed are withdrawn', async () => {
  await assertEach(BOTH, GAP, () => ({}))
  await assertEach(
    BOTH,
    () => 'no answer',
    () => ({}),
  )
})

test('orders may be signed if one node that was asked does not state the contrary', async () => {
  const others: Statement[] = [null, { signed: [HASH] }, { hashes: ['ab'.repeat(32)] }]
  for (const stated of others)
    for (const node of [1, 2, 3])
      await assertEach(NEITHER, GAP, (each) => (each === node ? stated : {}))
})

test('attack: a node states that another one has signed nothing', async () => {
  for (const node of [1, 2, 3])
    await assertEach(NEITHER, GAP, (each) => (each === node ? { by: 1 + (node % 3) } : {}))
})

test('a node that was restored knows only of later orders', async () => {
  await assertEach({ isUntouched: true, isUnsigned: false }, GAP, () => ({ complete_since: 1000 }))
  const future = Date.now() + 3_600_000
  await assertEach(NEITHER, GAP, (node) => (node === 2 ? { complete_since: future } : {}))
})

test('a node that received no order need not answer', async () => {
  await assertEach(
    { isUntouched: true, isUnsigned: false },
    () => 'not sent',
    () => null,
  )
})

test('attack (G8): a leader that attributes refusals to other nodes fails no transfer', async () => {
  for (const hostile of [1, 2, 3])
    for (const account of ACCOUNTS) {
      const { outcome, pairs } = await outcomeOf(account, (leader, partner) => {
        if (leader === hostile) return { error: 'SHAPE', node: partner }
        return partner === hostile ? { error: 'SHAPE', node: partner } : 'signed'
      })
      assert.equal(outcome.kind, 'signed', JSON.stringify(pairs))
      assert.ok(!pairs.at(-1)!.includes(hostile))
    }
})

test('attack (G8): a leader that refuses by itself fails no transfer, and is counted', async () => {
  for (const hostile of [1, 2, 3]) {
    let disputed = 0
    for (const account of ACCOUNTS) {
      const { outcome, disputes } = await outcomeOf(account, (leader, partner) =>
        [leader, partner].includes(hostile)
          ? { error: 'SHAPE', ...(leader === hostile ? {} : { node: hostile }) }
          : 'signed',
      )
      assert.equal(outcome.kind, 'signed')
      if (disputes !== '') disputed++
      assert.ok(['', `${hostile}: 1`].includes(disputes), disputes)
    }
    assert.ok(disputed > 0)
  }
})

test('attack: a node that leads with wrong or malformed signatures delays no transfer', async () => {
  for (const hostile of [1, 2, 3])
    for (const account of ACCOUNTS)
      for (const answer of ['wrong', 'garbage'] as const) {
        const { outcome, pairs } = await outcomeOf(account, (leader) =>
          leader === hostile ? answer : 'signed',
        )
        assert.deepEqual(outcome.kind === 'signed' && outcome.signed, SIGNED)
        assert.notEqual(pairs.at(-1)![0], hostile)
      }
})

test('what two nodes refuse by themselves is refused', async () => {
  for (const account of ACCOUNTS) {
    const { outcome, pairs } = await outcomeOf(account, () => ({ error: 'SHAPE' }))
    assert.equal(outcome.kind, 'refused')
    assert.equal(pairs.length, 2)
    // Two nodes that do not know the caller refuse, and the third one cannot sign alone.
    const partly = await outcomeOf(account, (leader, partner) =>
      leader === 1 ? { error: 'NOT_ENROLLED', node: partner } : { error: 'NOT_ENROLLED' },
    )
    assert.equal(partly.outcome.kind, 'refused')
  }
})
