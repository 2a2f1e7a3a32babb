import assert from 'node:assert/strict'
import test from 'node:test'
import {
  ModelNode,
  ModelRun,
  randomOf,
  type Recharge,
  type Signed,
} from '../../testing/spending-model.ts'
import type { Verdict, WindowCharge } from '../policy/order.ts'
import { SLACK_MS, windowName } from '../store/spending.ts'
import { toldSchema, TOLD_MAX, type SharedSpending } from './shared-spending.ts'

const HOUR_MS = 3_600_000
const HOURS: Readonly<Record<string, number>> = { 'a day': 24, 'b day': 24, 'cap week': 168 }
/** Two rules of a policy: each has a window of a day, and both count in one window of a week. */
const WAYS = { a: ['a day', 'cap week'], b: ['b day', 'cap week'] } as const
type Way = keyof typeof WAYS

interface Payment {
  step: string
  transaction: string
  amount: bigint
}
const verdictOf = (
  { step, transaction, amount }: Payment,
  charges: readonly WindowCharge[],
  via = 'a',
): Verdict =>
  ({
    step,
    unsignedHash: transaction,
    charges: [],
    order: { workspace: 'w' },
    policy: { number: 1, hash: 'ab'.repeat(32), via, charges },
    amount,
  }) as unknown as Verdict
const paid = (payment: Payment, way: Way): Verdict =>
  verdictOf(
    payment,
    WAYS[way].map((key) => ({
      key,
      hours: HOURS[key]!,
      amounts: new Map([['BTC', payment.amount]]),
    })),
    way,
  )

/**
 * Returns the largest part of its limit that was signed within the time of each window. Two
 * transactions of a step exclude each other, so only the larger one counts.
 */
function worstIn(
  signed: readonly Signed[],
  limits: ReadonlyMap<string, bigint>,
): Map<string, number> {
  const worst = new Map<string, number>()
  for (const [key, limit] of limits) {
    const uses = signed.flatMap(({ at, verdict }) => {
      const charge = verdict.policy!.charges.find((each) => each.key === key)
      return charge ? [{ at, step: verdict.step, amount: charge.amounts.get('BTC')! }] : []
    })
    for (const { at: end } of uses) {
      const steps = new Map<string, bigint>()
      for (const { at, step, amount } of uses)
        if (at <= end && at > end - HOURS[key]! * HOUR_MS && amount > (steps.get(step) ?? 0n))
          steps.set(step, amount)
      const sum = [...steps.values()].reduce((all, each) => all + each, 0n)
      worst.set(key, Math.max(worst.get(key) ?? 0, Number(sum) / Number(limit)))
    }
  }
  return worst
}

interface Options {
  isTold: boolean
  hostile: number | null
  faults: boolean
  isLong: boolean
  recharge: Recharge
}
const honest: Options = {
  isTold: true,
  hostile: null,
  faults: true,
  isLong: true,
  recharge: 'uncovered',
}

/** Returns the most that any of many runs has signed within each window, in parts of its limit. */
async function worstOf(runs: number, options: Options): Promise<Record<string, number>> {
  const worst: Record<string, number> = {}
  for (let seed = 1; seed <= runs; seed++) {
    const random = randomOf(seed)
    const limit = BigInt(2 + (seed % 4))
    const limits = new Map([
      ['a day', limit],
      ['b day', limit],
      ['cap week', 2n * limit],
    ])
    // A step has one or two transactions, of which the second may be a speed-up.
    const payments = Array.from({ length: 16 }, (_, at): Payment => ({
      step: `s${at % 11}`,
      transaction: `t${at}`,
      amount: BigInt(1 + random(2)),
    }))
    const next = (): Verdict => paid(payments[random(16)]!, random(2) === 0 ? 'a' : 'b')
    const run = new ModelRun({ ...options, random, next, limits, sessions: 40 })
    for (const [key, part] of worstIn(await run.run(), limits))
      worst[key] = Math.max(worst[key] ?? 0, part)
  }
  return worst
}
const most = (worst: Record<string, number>): number => Math.max(...Object.values(worst))

test('windows of a day and of a week hold for all pairs: lost messages, restarts, retries under another rule', async () => {
  const worst = await worstOf(250, honest)
  assert.deepEqual(worst, { 'a day': 1, 'b day': 1, 'cap week': 1 })
  assert.ok(most(await worstOf(150, { ...honest, isLong: false })) <= 1)
})

test('the pairs exceed windows if the nodes do not send each other their charges', async () => {
  assert.ok(most(await worstOf(60, { ...honest, isTold: false })) > 1)
})

test('windows are exceeded if a recorded transaction is not charged to the rule by which it is signed', async () => {
  assert.ok(most(await worstOf(150, { ...honest, isLong: false, recharge: 'never' })) > 1)
})

test('windows are exceeded if a recorded transaction is not charged again after it has left a window', async () => {
  assert.ok(most(await worstOf(250, { ...honest, recharge: 'other windows' })) > 1)
})

test('one hostile node that hides its charges at most doubles a window', async () => {
  const worst = most(await worstOf(150, { ...honest, hostile: 3 }))
  assert.ok(worst > 1 && worst <= 2, `${worst} times the limit`)
})

/** Three nodes that call each other without delay. */
function threeNodes(): [ModelNode, ModelNode, ModelNode] {
  const nodes = [1, 2, 3].map((node) => new ModelNode(node))
  const byNumber = new Map(nodes.map((node) => [node.node, node]))
  for (const node of nodes) node.start(byNumber, async () => {})
  return nodes as [ModelNode, ModelNode, ModelNode]
}
const payment = (step: string): Verdict => paid({ step, transaction: step, amount: 1n }, 'a')
const DAY = windowName('w', 'a day')
/** Returns the charges to a window that count besides those on the node's record. */
const chargesTo = (
  { recorded, inProgress, judged }: ReturnType<SharedSpending['other']>,
  window: string,
): readonly { step: string }[] => [
  ...recorded
    .chargesTo(window)
    .charges.filter(
      ({ step, transaction }) =>
        !judged.some((each) => each.step === step && each.transaction === transaction),
    ),
  ...inProgress(window),
]
const stepsOf = (other: ReturnType<SharedSpending['other']>): string[] =>
  chargesTo(other, DAY)
    .map(({ step }) => step)
    .sort()

test('sends the charges to windows of recorded steps and of sessions in progress', async () => {
  const [one, two] = threeNodes()
  await two.shared.prepare(1)
  await one.shared.hear(2, two.tell(1, []), [])
  one.write(payment('a'))
  const end = one.shared.begin([payment('b')])
  const told = one.tell(2, [])
  const windows = ['a day', 'cap week'].map((key) => ({
    budget: windowName('w', key),
    amounts: { BTC: '1' },
  }))
  assert.deepEqual(told.pending, [{ step: 'b', transaction: 'b', charges: [], windows }])
  assert.deepEqual(told.steps, [
    { step: 'a', transaction: 'a', charges: [], windows, height: 1, age_ms: 0 },
  ])
  const other = await two.shared.hear(1, told, [])
  assert.deepEqual(stepsOf(other), ['a', 'b'])
  assert.deepEqual(other.budget(DAY), [])
  assert.deepEqual(stepsOf(two.shared.other(1, [payment('a')])), [])
  assert.deepEqual(stepsOf(one.shared.other(2, [])), ['b'])
  end()
  assert.deepEqual(one.tell(2, []).pending, [])
})

test('a message without a policy has no field for windows', async () => {
  const [one, two] = threeNodes()
  await one.shared.hear(2, two.tell(1, []), [])
  const charge = { budget: 'b', amount: 1n, limit: 2n }
  const plain = { ...payment('a'), policy: null, charges: [charge] } as unknown as Verdict
  one.write(plain)
  one.shared.begin([plain])
  const { steps, pending } = one.tell(2, [])
  assert.deepEqual(
    [...steps, ...pending].map((each) => 'windows' in each),
    [false, false],
  )
})

test('sends each charge of a step as long as it counts', async () => {
  const [one, two] = threeNodes()
  const charge = { budget: 'b', amount: 1n, limit: 2n }
  one.write({ ...payment('a'), charges: [charge] } as unknown as Verdict)
  const counts = async (ageMs: number): Promise<[number, number]> => {
    const [, fresh] = threeNodes()
    one.aheadMs = ageMs
    fresh.aheadMs = ageMs
    fresh.start(new Map([[1, one]]), async () => {})
    await fresh.shared.prepare(1)
    const other = fresh.shared.other(1, [])
    return [other.budget('b').length, chargesTo(other, DAY).length]
  }
  assert.deepEqual(await counts(24 * HOUR_MS + SLACK_MS), [1, 1])
  assert.deepEqual(await counts(24 * HOUR_MS + SLACK_MS + 1), [0, 1])
  assert.deepEqual(await counts(168 * HOUR_MS + SLACK_MS + 1000), [0, 1])
  assert.deepEqual(await counts(168 * HOUR_MS + SLACK_MS + 1001), [0, 0])
  assert.equal(two.spending.bytes, 0)
})

/** Returns a verdict whose charges are as large as the record permits. */
const largest = (step: string): Verdict =>
  verdictOf(
    { step, transaction: step, amount: 1n },
    Array.from({ length: 32 }, (_, at) => ({
      key: `${step} ${at}`.padEnd(1000, '"'),
      hours: 168,
      amounts: new Map(['A', 'B', 'C'].map((asset) => [asset.repeat(64), 10n ** 77n])),
    })),
  )

test('large charges are read in pages of limited size, each step once', async () => {
  const [one, two] = threeNodes()
  await one.shared.hear(2, two.tell(1, []), [])
  for (let at = 0; at < TOLD_MAX; at++) one.write(largest(`s${at}`))
  const told = one.tell(2, [])
  assert.deepEqual([told.from, told.to, told.steps], [TOLD_MAX, TOLD_MAX, []])
  const sizes: number[] = []
  const answer = one.handlers.get('/peer/spending')!
  one.handlers.set('/peer/spending', async (...call) => {
    const page = await answer(...call)
    sizes.push(Buffer.byteLength(JSON.stringify(page)))
    return page
  })
  const other = await two.shared.hear(1, told, [])
  assert.ok(sizes.length > 2 && Math.max(...sizes) < 9 * 1024 * 1024, `pages of ${sizes.join()}`)
  for (let at = 0; at < TOLD_MAX; at++) {
    const [{ key }] = largest(`s${at}`).policy!.charges as [WindowCharge]
    assert.equal(chargesTo(other, windowName('w', key)).length, 1)
  }
})

test('sessions whose charges do not fit into a message are refused until others end', () => {
  const [one] = threeNodes()
  const ends: (() => void)[] = []
  assert.throws(
    () => {
      for (let at = 0; at < 100; at++) ends.push(one.shared.begin([largest(`s${at}`)]))
    },
    { code: 'TOO_BUSY' },
  )
  assert.ok(ends.length > 10)
  const told = one.tell(2, [])
  assert.ok(Buffer.byteLength(JSON.stringify(told)) <= 4.1 * 1024 * 1024)
  // A transaction without charges is not refused.
  one.shared.begin([{ ...largest('none'), policy: null }])
  ends[0]!()
  ends[0]!()
  one.shared.begin([largest('more')])
  assert.throws(() => one.shared.begin([largest('again')]), { code: 'TOO_BUSY' })
})

test('refuses a peer that sends more charges than a node keeps, and reads its record again later', async () => {
  const [one, two] = threeNodes()
  two.keptBytesMax = 64 * 1024 * 1024
  two.start(new Map([[1, one]]), async () => {})
  const told = one.tell(2, [])
  const charges = Array.from({ length: 32 }, () => ({ budget: 'b', amount: '1' }))
  const message = (from: number) => ({
    ...told,
    from,
    to: from + TOLD_MAX,
    steps: Array.from({ length: TOLD_MAX }, (_, at) => ({
      step: `${from} ${at} `.padEnd(4096, 's'),
      transaction: 't'.repeat(4096),
      charges,
      height: from + at + 1,
      age_ms: 0,
    })),
  })
  const flood = async (): Promise<void> => {
    for (let from = 0; from < 40 * TOLD_MAX; from += TOLD_MAX)
      await two.shared.hear(1, message(from), [])
  }
  await assert.rejects(flood(), { code: 'TOO_BUSY' })
  one.write(payment('a'))
  await assert.rejects(two.shared.prepare(1), { code: 'TOO_BUSY' })
  two.aheadMs = 60_001
  await two.shared.prepare(1)
  assert.deepEqual(stepsOf(two.shared.other(1, [])), ['a'])
})

test('a message with malformed windows is refused', () => {
  const [one] = threeNodes()
  one.shared.begin([payment('a')])
  const told = one.tell(2, [])
  const [pending] = told.pending as [(typeof told.pending)[0]]
  const [window] = pending.windows as [{ budget: string; amounts: object }]
  for (const windows of [
    Array.from({ length: 33 }, () => window),
    [{ ...window, hours: 1 }],
    [{ ...window, amounts: { A: '1', B: '1', C: '1', D: '1' } }],
    [{ ...window, amounts: { A: '-1' } }],
    [{ ...window, budget: 1 }],
  ])
    assert.equal(
      toldSchema.safeParse({ ...told, pending: [{ ...pending, windows }] }).success,
      false,
    )
  assert.ok(toldSchema.safeParse(told).success)
})
