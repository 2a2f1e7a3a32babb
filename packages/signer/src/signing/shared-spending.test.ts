import assert from 'node:assert/strict'
import test from 'node:test'
import { ModelNode, ModelRun, randomOf } from '../../testing/spending-model.ts'
import { Refusal } from '../errors.ts'
import { WINDOW_MS } from '../policy/budget.ts'
import type { Verdict } from '../policy/order.ts'
import { TOLD_MAX } from './shared-spending.ts'

const BUDGET = 'workspace ETH sub-account'

type Kind = 'plain' | 'largest'
interface Payment {
  step: string
  transaction: string
  amount: bigint
}

const verdictOf = ({ step, transaction, amount }: Payment, limit: bigint, kind: Kind): Verdict =>
  ({
    step,
    unsignedHash: transaction,
    charges: [{ budget: BUDGET, amount, limit, largest: kind === 'largest' }],
    policy: null,
  }) as unknown as Verdict

interface Options {
  seed: number
  limit: bigint
  kind: Kind
  payments: number
  sessions: number
  isTold: boolean
  hostile: number | null
  faults: boolean
}

/** Runs sessions of random pairs, and returns the amount that was signed. */
async function signedIn({
  seed,
  limit,
  kind,
  payments: count,
  ...options
}: Options): Promise<bigint> {
  const random = randomOf(seed)
  // Two transactions of a payment exclude each other if the limit counts the largest.
  const payments = Array.from({ length: count }, (_, at): Payment => ({
    step: kind === 'largest' ? `s${at >> 1}` : `s${at}`,
    transaction: `t${at}`,
    amount: BigInt(1 + random(2)),
  }))
  const next = (): Verdict => verdictOf(payments[random(count)]!, limit, kind)
  const sums = new Map<string, bigint>()
  for (const { verdict } of await new ModelRun({ ...options, random, next }).run()) {
    const key = kind === 'largest' ? verdict.step : verdict.unsignedHash
    const [before, { amount }] = [sums.get(key) ?? 0n, verdict.charges[0]!]
    sums.set(key, before > amount ? before : amount)
  }
  return [...sums.values()].reduce((sum, amount) => sum + amount, 0n)
}

/** Returns the most that any of many runs has signed, in parts of the limit. */
async function worstOf(runs: number, options: Omit<Options, 'seed' | 'limit'>): Promise<number> {
  let worst = 0
  for (let seed = 1; seed <= runs; seed++) {
    const limit = BigInt(2 + (seed % 4))
    const signed = await signedIn({ ...options, seed, limit })
    worst = Math.max(worst, Number(signed) / Number(limit))
  }
  return worst
}

const many = { payments: 12, sessions: 14, isTold: true, hostile: null, faults: true }

test('limits hold for all pairs together: repeats by other pairs, lost messages and restarts', async () => {
  assert.ok((await worstOf(500, { ...many, kind: 'plain' })) <= 1, 'plain')
  assert.ok((await worstOf(500, { ...many, kind: 'largest' })) <= 1, 'largest')
  assert.ok((await worstOf(500, { ...many, kind: 'plain', payments: 6, sessions: 20 })) <= 1)
})

test('the limit is used up completely when all nodes are honest', async () => {
  const options = { ...many, kind: 'plain' as const, faults: false }
  assert.equal(await worstOf(50, options), 1)
})

test('the pairs exceed the limit if the nodes do not send each other their charges', async () => {
  assert.ok((await worstOf(300, { ...many, kind: 'plain', isTold: false })) > 1)
})

test('one hostile node that hides its charges at most doubles the limit', async () => {
  const worst = await worstOf(500, { ...many, kind: 'plain', hostile: 3, sessions: 24 })
  assert.ok(worst <= 2, `${worst} times the limit`)
  assert.ok(worst > 1, 'the model of a hostile node does nothing')
})

/** Two nodes that call each other without delay. */
function twoNodes(): [ModelNode, ModelNode] {
  const nodes = new Map([1, 2, 3].map((node) => [node, new ModelNode(node)]))
  for (const node of nodes.values()) node.start(nodes, async () => {})
  return [nodes.get(1)!, nodes.get(2)!]
}
const payment = (name: string, amount = 1n): Verdict =>
  verdictOf({ step: name, transaction: name, amount }, 10n, 'plain')
const amountsOf = (charges: readonly { transaction: string }[]): string[] =>
  charges.map(({ transaction }) => transaction).sort()

test('clocks that differ by more than a minute refuse an order that counts against a limit', async () => {
  const [one, two] = twoNodes()
  two.aheadMs = 60_000
  await two.shared.hear(1, one.tell(2, []), [])
  for (const [aheadMs, seconds] of [
    [60_001, 60],
    [-60_600, 61],
    [3_600_000, 3600],
  ] as const) {
    two.aheadMs = aheadMs
    await assert.rejects(two.shared.hear(1, one.tell(2, []), []), {
      code: 'CLOCK',
      status: 503,
      message: `The clocks of this node and of node 1 differ by ${seconds} s: correct them by NTP`,
      detail: { node: 1 },
    })
  }
})

test('a charge of another node counts for a day and two minutes more, by the receiver’s clock', async () => {
  const [one, two] = twoNodes()
  one.write(payment('a'))
  two.aheadMs = 30_000
  one.aheadMs = 1000
  const other = await two.shared.hear(1, one.tell(2, []), [])
  assert.deepEqual(amountsOf(other.budget(BUDGET)), ['a'])
  const counts = (aheadMs: number): string[] => {
    two.aheadMs = aheadMs
    return amountsOf(two.shared.other(1, []).budget(BUDGET))
  }
  // The charge is 1 s old when it is told, 29 s after the clock of the other node.
  const heardAt = 30_000 - 1000
  assert.deepEqual(counts(heardAt + WINDOW_MS + 120_000), ['a'])
  assert.deepEqual(counts(heardAt + WINDOW_MS + 120_001), [])
})

test('more steps than one message contains are read page by page, each once', async () => {
  const [one, two] = twoNodes()
  const names = Array.from({ length: 3 * TOLD_MAX + 500 }, (_, at) => `p${at}`)
  for (const name of names) one.write(payment(name))
  assert.equal(await two.shared.prepare(1), true)
  assert.deepEqual(amountsOf(two.shared.other(1, []).budget(BUDGET)), [...names].sort())
  // From now on only what is new is told.
  await one.shared.hear(2, two.tell(1, []), [])
  one.write(payment('new'))
  const told = one.tell(2, [])
  assert.deepEqual(
    told.steps.map(({ step }) => step),
    ['new'],
  )
  assert.deepEqual([told.from, told.to], [names.length, names.length + 1])
  // A repeated or late message adds nothing.
  for (let times = 0; times < 3; times++) await two.shared.hear(1, told, [])
  assert.equal(two.shared.other(1, []).budget(BUDGET).length, names.length + 1)
})

test('a message contains 200 new steps, and more are read page by page', async () => {
  const [one, two] = twoNodes()
  await two.shared.prepare(1)
  await one.shared.hear(2, two.tell(1, []), [])
  for (let at = 0; at < TOLD_MAX; at++) one.write(payment(`p${at}`))
  let told = one.tell(2, [])
  assert.deepEqual([told.from, told.to, told.steps.length], [0, TOLD_MAX, TOLD_MAX])
  one.write(payment('one more'))
  told = one.tell(2, [])
  assert.deepEqual([told.from, told.to, told.steps.length], [TOLD_MAX + 1, TOLD_MAX + 1, 0])
  const other = await two.shared.hear(1, told, [])
  assert.equal(other.budget(BUDGET).length, TOLD_MAX + 1)
})

test('an acknowledgement from an earlier start of a peer is not used', async () => {
  const [one, two] = twoNodes()
  one.write(payment('a'))
  await two.shared.prepare(1)
  await one.shared.hear(2, two.tell(1, []), [])
  one.write(payment('b'))
  assert.deepEqual(
    one.tell(2, []).steps.map(({ step }) => step),
    ['b'],
  )
  // After its restart the peer knows nothing, so it reads everything page by page.
  two.start(new Map([[1, one]]), async () => {})
  const told = one.tell(2, [])
  assert.deepEqual([told.from, told.to, told.steps], [2, 2, []])
  const other = await two.shared.hear(1, told, [])
  assert.deepEqual(amountsOf(other.budget(BUDGET)), ['a', 'b'])
})

test('concurrent orders read the record of a peer once, and a height it does not have is refused', async () => {
  const [one, two] = twoNodes()
  for (let at = 0; at < 600; at++) one.write(payment(`p${at}`))
  const pages: number[] = []
  const answer = one.handlers.get('/peer/spending')!
  one.handlers.set('/peer/spending', async (node, body, header, bytes) => {
    pages.push((body as { after: number }).after)
    return answer(node, body, header, bytes)
  })
  const told = one.tell(2, [])
  const heard = await Promise.all([
    two.shared.prepare(1),
    two.shared.prepare(1),
    two.shared.hear(1, told, []),
  ])
  assert.deepEqual(pages, [0, 500])
  assert.equal(heard[2].budget(BUDGET).length, 600)
  const ahead = { ...told, from: 700, to: 700 }
  await assert.rejects(two.shared.hear(1, ahead, []), { code: 'PEER_UNAVAILABLE' })
  assert.equal(pages.length, 4)
})

test('what is being signed counts at the other node, except the transactions of the same order', async () => {
  const [one, two] = twoNodes()
  const [a, b] = [payment('a'), payment('b')]
  const end = one.shared.begin([a])
  one.shared.begin([b])
  one.shared.begin([b])
  const other = await two.shared.hear(1, one.tell(2, [b]), [b])
  assert.deepEqual(amountsOf(other.budget(BUDGET)), ['a'])
  assert.deepEqual(amountsOf(one.shared.other(2, [b]).budget(BUDGET)), ['a'])
  assert.deepEqual(amountsOf(one.shared.other(2, [a]).budget(BUDGET)), ['b', 'b'])
  end()
  assert.deepEqual(amountsOf(one.shared.other(2, [b]).budget(BUDGET)), [])
  one.write(b)
  assert.deepEqual(amountsOf((await two.shared.hear(1, one.tell(2, [b]), [b])).budget(BUDGET)), [])
  assert.deepEqual(amountsOf(two.shared.other(1, [a]).budget(BUDGET)), ['b'])
})

test('reads the new record of a restored peer from the beginning', async () => {
  const [one, two] = twoNodes()
  one.write(payment('a'))
  one.write(payment('b'))
  await two.shared.prepare(1)
  one.store.state.generation = 1
  const told = one.tell(2, [])
  assert.deepEqual(amountsOf((await two.shared.hear(1, told, [])).budget(BUDGET)), ['a', 'b'])
  // The position that this node sends names the generation, and does not count for another record.
  const known = two.tell(1, []).known
  assert.deepEqual(known, { generation: 1, height: 2 })
  await one.shared.hear(2, { ...two.tell(1, []), known: { generation: 0, height: 2 } }, [])
  assert.equal(one.tell(2, []).from, 0)
})

test('sends nothing to a peer of an earlier version, and refuses a malformed answer', async () => {
  const [one, two] = twoNodes()
  const answers: unknown[] = [
    {},
    { generation: 0, to: 1, is_last: true, steps: [{}] },
    { generation: 0, to: 1, is_last: false, steps: [] },
  ]
  for (const answer of answers) {
    one.handlers.set('/peer/spending', async () => answer)
    await assert.rejects(two.shared.prepare(1), { code: 'PEER_UNAVAILABLE' })
  }
  one.handlers.set('/peer/spending', async () => {
    throw new Refusal('NOT_FOUND', 'This call does not exist')
  })
  assert.equal(await two.shared.prepare(1), false)
  // The node reads its record again after it was upgraded.
  const height = one.record.height
  const nodes = new Map([
    [1, one],
    [2, two],
  ])
  one.start(nodes, async () => {})
  assert.equal(await two.shared.prepare(1), true)
  assert.equal(one.record.height, height)
})
