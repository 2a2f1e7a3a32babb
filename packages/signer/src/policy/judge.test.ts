import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { Refusal } from '../errors.ts'
import { assertAge, DAY_S, isTimely } from './age.ts'
import { assertBudget, beyondShare, costOfFuel } from './budget.ts'
import type { Charge, Subject, Verdict } from './order.ts'
import { assertRun, each, eachNow } from './run.ts'
import { RUN_MAX } from '../store/entries/values.ts'
import type { Proven } from '../intent/request.ts'
import { Spending } from '../store/spending.ts'
import { State } from '../store/state.ts'
import { ETH, eth, SINK_ETH, type Caller } from '../../testing/signer-cluster.ts'
import {
  addressOf,
  asksAbout,
  asksPay,
  asksRule,
  Bench,
  IAT,
  pay,
  SESSION,
  verdictOf,
  type JudgedRequest,
} from '../../testing/judging.ts'

/**
 * Judgements that depend on the record: daily budgets, runs, and transactions that are signed
 * already.
 */
const ONE = 10n ** 18n
const GWEI = 1_000_000_000n
const NOW = IAT * 1000
const DAY_MS = DAY_S * 1000
let heights = 0
const charge = (
  spending: Spending,
  budget: string,
  { at, amount, step }: { at: number; amount: bigint; step: string },
): void => {
  heights++
  spending.add({
    height: heights,
    charges: [{ budget, at, amount, step, transaction: `transaction ${heights}` }],
  })
}
const said = (act: () => unknown): unknown => {
  try {
    act()
    return null
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { code: error.code, message: error.message, detail: error.detail }
  }
}

test('rules 11 to 13: charges of the last 24 hours and of the same session count together', () => {
  const spending = new Spending()
  const state = { spending } as unknown as State
  const charged = (amount: bigint, more: Partial<Charge> = {}, ahead: Charge[] = [], step = 's') =>
    said(() => {
      assertBudget(
        state,
        { step, charges: [{ budget: 'b', amount, limit: 10n, ...more }] } as unknown as Verdict,
        NOW,
        { ahead },
      )
    })
  const used = (spent: bigint) => ({
    code: 'BUDGET',
    message: `The budget of 24 hours is used up: ${spent} of 10`,
    detail: { spent: String(spent), limit: '10' },
  })
  assert.deepEqual([charged(10n), charged(11n)], [null, used(0n)])
  const ahead: Charge[] = [
    { budget: 'b', amount: 3n, limit: 10n },
    { budget: 'other', amount: 9n, limit: 10n },
    { budget: 'b', amount: 2n, limit: 10n },
  ]
  assert.deepEqual([charged(5n, {}, ahead), charged(6n, {}, ahead)], [null, used(5n)])
  charge(spending, 'b', { at: NOW - DAY_MS - 1, amount: 9n, step: 'x' })
  charge(spending, 'b', { at: NOW - DAY_MS, amount: 4n, step: 's' })
  charge(spending, 'other', { at: NOW, amount: 9n, step: 's' })
  assert.deepEqual([charged(6n), charged(7n)], [null, used(4n)])
  assert.deepEqual([charged(2n, {}, [ahead[0]!]), charged(4n, {}, [ahead[0]!])], [null, used(7n)])
  const two = (first: bigint, second: bigint) =>
    said(() => {
      const charges = [
        { budget: 'b', amount: first, limit: 10n },
        { budget: 'other', amount: second, limit: 10n },
      ]
      assertBudget(state, { step: 's', charges } as unknown as Verdict, NOW)
    })
  assert.deepEqual([two(6n, 1n), two(6n, 2n)], [null, used(9n)])
})

test('rule 13: of each step only the most expensive charge counts; the rule states its cap', () => {
  const spending = new Spending()
  const state = { spending } as unknown as State
  const charged = (amount: bigint, step: string, rule = false) =>
    said(() => {
      assertBudget(
        state,
        {
          step,
          charges: [{ budget: 'b', amount, limit: 20n, largest: true, rule }],
        } as unknown as Verdict,
        NOW,
      )
    })
  const used = (spent: bigint) => ({
    code: 'BUDGET',
    message: `The budget of 24 hours is used up: ${spent} of 20`,
    detail: { spent: String(spent), limit: '20' },
  })
  charge(spending, 'b', { at: NOW, amount: 3n, step: 'a' })
  charge(spending, 'b', { at: NOW, amount: 7n, step: 'a' })
  charge(spending, 'b', { at: NOW, amount: 5n, step: 'c' })
  charge(spending, 'b', { at: NOW - DAY_MS - 1, amount: 5n, step: 'old' })
  assert.deepEqual([charged(8n, 'new'), charged(9n, 'new')], [null, used(12n)])
  assert.deepEqual([charged(15n, 'a'), charged(16n, 'a'), charged(1n, 'a')], [null, used(5n), null])
  assert.deepEqual(charged(9n, 'new', true), {
    code: 'FORWARD_CAP',
    message: "The rule's daily cap allows 20; with this forward it would be 21",
    detail: { moved: '12', limit: '20' },
  })
  charge(spending, 'b', { at: NOW, amount: 12n, step: 'c' })
  assert.deepEqual(
    charged(1n, 'a'),
    null,
    '7 of its own and 12: less than what was signed is not more',
  )
  charge(spending, 'b', { at: NOW, amount: 14n, step: 'c' })
  assert.deepEqual(charged(1n, 'a'), used(14n), 'and never less than what was signed')
})

test('counts the part of a fee above a twentieth of the amount; gas funding counts in full', () => {
  assert.deepEqual(
    [
      beyondShare(5n, 100n),
      beyondShare(6n, 100n),
      beyondShare(5n, 99n),
      beyondShare(7n, 0n),
      beyondShare(4n, 100n),
    ],
    [0n, 1n, 1n, 7n, 0n],
  )
  assert.equal(
    costOfFuel({ decoded: { payments: [{ amount: 7n }], fee_max: 3n } } as unknown as Subject),
    10n,
  )
})

test('rule 3: a request is valid until a minute after its end, and refused with its age', () => {
  assert.deepEqual([isTimely(100, 160), isTimely(100, 161)], [true, false])
  const proven = {
    iat: 1_000_000,
    exp: 1_000_025,
    nonce: 'n',
    enrolment: { api_key: 'k' },
  } as unknown as Proven
  const aged = (after: number, more: object = {}) => {
    const refusal = said(() => {
      assertAge({
        state: { notBefore: 0, seen: new Map(), ...more } as unknown as State,
        identities: new Map(),
        proven,
        content: 'c',
        receipts: [],
        now: 1_000_000 + after,
      })
    })
    return refusal && (refusal as { message: string }).message
  }
  assert.equal(
    aged(0, { notBefore: 1_000_000_001 }),
    'The request was issued before this node was restored, or before its clock was repaired',
  )
  assert.equal(
    aged(7 * DAY_S + 1, { seen: new Map([[State.requestKey('k', 'n'), { timely: true }]]) }),
    'The request was issued more than 7 days ago',
  )
  assert.equal(
    aged(DAY_S + 1),
    'The request was issued more than 24 hours ago, and no node received it before it expired',
  )
})

const verdictAt = (nonce: bigint | null, more: object = {}): Verdict =>
  ({
    order: { purpose: { kind: 'pay' } },
    key: { key_id: 'k' },
    decoded: { network: 'ETH', from: ['a'], nonce },
    step: `s${nonce}`,
    beside: [],
    charges: [],
    repeatable: false,
    leftover: null,
    fuelled: null,
    rule: null,
    ordered: null,
    voids: [],
    ...more,
  }) as unknown as Verdict

test('a batch accepts only payments or gas funding of one account with consecutive nonces', () => {
  const runs = (...verdicts: Verdict[]) =>
    said(() => {
      assertRun(verdicts)
    })
  const bad = (message: string, detail: object = {}) => ({ code: 'BAD_ORDER', message, detail })
  const first = verdictAt(4n)
  const after = (more: object) => runs(first, verdictAt(5n, more))
  assert.deepEqual(
    [runs(first), runs(first, verdictAt(5n)), runs(first, verdictAt(5n), verdictAt(6n))],
    [null, null, null],
  )
  const many = (count: number) => Array.from({ length: count }, (_, at) => verdictAt(BigInt(at)))
  assert.deepEqual(
    [runs(...many(RUN_MAX)), runs(...many(RUN_MAX + 1))],
    [null, bad('At most 16 transactions can be signed together')],
  )
  const numbers = bad('Only transactions with nonces can be signed together')
  assert.deepEqual(
    [runs(), runs(verdictAt(null), verdictAt(null, { step: 'other' }))],
    [numbers, numbers],
  )
  const plain = bad('Only original payments and fuel for them can be signed together', { at: 1 })
  const fuel = { order: { purpose: { kind: 'fuel' } } }
  const charge = { budget: 'b', amount: 1n, limit: 1n }
  for (const more of [
    { order: { purpose: { kind: 'pay', speed_up: {} } } },
    { charges: [charge] },
    { order: { purpose: { kind: 'sweep' } } },
    { order: { purpose: { kind: 'forward' } } },
    { order: { purpose: { kind: 'drain' } }, charges: [] },
    { ...fuel, charges: [charge, { ...charge, largest: true }] },
    { ...fuel, charges: [{ ...charge, rule: true }] },
    { repeatable: true },
    { leftover: {} },
    { fuelled: {} },
    { rule: {} },
    { voids: ['v'] },
  ])
    assert.deepEqual(after(more), plain, JSON.stringify(Object.keys(more)))
  assert.equal(after({ ...fuel, charges: [charge, charge] }), null)
  const one = bad(
    'Transactions that are signed together must belong to one account and have consecutive nonces',
    {
      at: 1,
    },
  )
  assert.deepEqual(after({ decoded: { network: 'ETH', from: ['b'], nonce: 5n } }), one)
  assert.deepEqual(after({ key: { key_id: 'other' } }), one)
  for (const nonce of [3n, 4n, 6n])
    assert.deepEqual(runs(first, verdictAt(nonce, { step: 'other' })), one)
  const twice = bad('A batch of transactions contains one payment twice')
  assert.deepEqual(after({ step: 's4' }), twice)
  assert.deepEqual(after({ beside: [{ step: 's4' }] }), twice)
  assert.deepEqual(
    runs(verdictAt(4n, { beside: [{ step: 'x' }] }), verdictAt(5n, { beside: [{ step: 'x' }] })),
    twice,
  )
})

test('a refusal in a batch states the position, and other errors are passed on unchanged', async () => {
  const refusal = new Refusal('BUDGET', 'words', { spent: '1' })
  const broken = new TypeError('broken')
  const throwing = (error: Error) => (one: number, at: number) => {
    if (one === 7) throw error
    return one + at
  }
  for (const judge of [each, eachNow] as const) {
    assert.deepEqual(await judge([1, 2, 3], (one, at) => one * 10 + at), [10, 21, 32])
    const caught = async (list: number[], error: Error) => {
      try {
        await judge(list, throwing(error))
        return null
      } catch (thrown) {
        return thrown
      }
    }
    const named = (await caught([1, 7, 3], refusal)) as Refusal
    assert.deepEqual(
      [named.code, named.message, named.detail],
      ['BUDGET', 'words', { spent: '1', at: 1 }],
    )
    assert.equal(await caught([7], refusal), refusal)
    assert.equal(await caught([1, 7], broken), broken)
  }
})

let bench: Bench
let mine: Caller
const path = [1, ETH.chain_index, 0]
beforeEach(() => {
  bench = new Bench(1)
  mine = bench.caller(1)
})
afterEach(() => {
  bench.close()
})
const paid = (nonce = 0, more: object = {}) => eth(path, { value: ONE, nonce, ...more })

test('judges each item of a batch as if earlier ones were recorded, and stores all or none', async () => {
  const requests = [await asksPay(mine), await asksPay(mine), await asksPay(mine)]
  const orders = (list: JudgedRequest[], from = 0) =>
    list.map((each, at) => bench.order(pay(each), paid(from + at)))
  const height = bench.store.record.height
  const admit = async (list: JudgedRequest[], from?: number) => {
    const verdicts = bench.judge.govern(await bench.judge.judgeAll(orders(list, from)))
    return bench.judge.admitAll(
      verdicts,
      verdicts.map(() => SESSION),
    )
  }
  assert.match((await verdictOf(() => admit(requests, 1))) as string, /^NONCE_GAP: /)
  assert.equal(
    await verdictOf(() =>
      bench.judge.judgeAll([orders(requests)[0]!, bench.order(pay(requests[1]!), paid(2))]),
    ),
    'BAD_ORDER: Transactions that are signed together must belong to one account and have consecutive nonces',
  )
  const second = await asksPay(mine, { sequence_id: 'x' }, { nonce: requests[0]!.nonce })
  assert.equal(
    await verdictOf(() => bench.judge.judgeAll(orders([requests[0]!, second]))),
    'INTENT_CONFLICT: Two requests of this API key have the same nonce',
  )
  assert.equal(bench.store.record.height, height)
  const steps = await admit(requests)
  assert.equal(bench.store.record.height, height + 6)
  assert.deepEqual(
    steps.map(({ unsigned_hash: hash }) => hash),
    (await bench.judge.judgeAll(orders(requests))).map(({ unsignedHash }) => unsignedHash),
  )
  // The payments again, with a new one among them: another session for each known payment, and one
  // step.
  const more = await asksPay(mine)
  const again = await admit([...requests, more])
  assert.deepEqual(again.slice(0, 3), steps)
  assert.equal(again[3]!.height, bench.store.record.height)
  assert.deepEqual(
    bench.store.record.page(height + 7, 100).map(({ kind }) => kind),
    ['session', 'session', 'session', 'seen', 'step'],
  )
  assert.equal((await bench.judge.judgeAll(orders([more]))).length, 1)
})

test('a batch of fuel transactions respects the budget and counts recorded ones once', async () => {
  const cap = BigInt(ETH.fee_cap)
  const tank = [0, ETH.chain_index, 0]
  const fuels = async (count: number, value: bigint) =>
    Promise.all(
      Array.from({ length: count }, async (_, nonce) =>
        bench.order(
          {
            kind: 'fuel',
            for: pay(await asksPay(mine)),
            gas: '1',
            max_fee_per_gas: cap.toString(),
          },
          eth(tank, { to: addressOf(ETH, path), value, nonce }),
        ),
      ),
    )
  const admit = async (orders: Awaited<ReturnType<typeof fuels>>) => {
    const verdicts = bench.judge.govern(await bench.judge.judgeAll(orders))
    return bench.judge.admitAll(
      verdicts,
      verdicts.map(() => SESSION),
    )
  }
  const fee = 42_000n * GWEI
  assert.match(
    (await verdictOf(async () => admit(await fuels(3, cap / 2n - fee)))) as string,
    /^BUDGET: /,
  )
  const two = await fuels(2, cap / 2n - fee)
  assert.equal(await verdictOf(() => admit(two)), null)
  assert.equal(await verdictOf(() => admit(two)), null)
  assert.equal(await verdictOf(() => admit(two.slice(0, 1))), null)
  const spare = await fuels(3, 1n)
  assert.match((await verdictOf(() => admit(spare.slice(2)))) as string, /^BUDGET: /)
})

test('signs a recorded transaction again at any age, but not a replacement', async () => {
  const request = await asksPay(mine)
  assert.equal(await bench.codeOf(pay(request), paid()), null)
  bench.now = IAT + 7 * DAY_S
  assert.equal(
    await bench.codeOf(pay(request), paid(0, { maxFeePerGas: 3n * GWEI })),
    null,
    'the node saw it live',
  )
  bench.now++
  assert.equal(await bench.codeOf(pay(request), paid()), null)
  assert.equal(
    await bench.codeOf(pay(request), paid(0, { maxFeePerGas: 4n * GWEI })),
    'TOO_OLD: The request was issued more than 7 days ago',
  )
})

test('signs nothing after a void, not even an earlier transaction', async () => {
  const request = await asksPay(mine)
  assert.equal(await bench.codeOf(pay(request), paid()), null)
  const by = await asksAbout(mine, request.id, 'cancel')
  assert.equal(
    await bench.codeOf(
      { kind: 'cancel', of: pay(request), request: by.request },
      eth(path, { to: addressOf(ETH, path), maxFeePerGas: 4n * GWEI }),
    ),
    null,
  )
  assert.equal(await bench.codeOf(pay(request), paid()), 'VOIDED: The intent was voided')
})

test('the refusal of a second transaction contains the recorded one and its signatures', async () => {
  const request = await asksPay(mine)
  const step = bench.judge.admit(await bench.verdict(pay(request), paid()), SESSION)
  const recorded = async () => {
    try {
      await bench.judge.admit(await bench.verdict(pay(request), paid(1)), SESSION)
      return null
    } catch (error) {
      return (error as Refusal).detail
    }
  }
  const { network, bytes, inputs } = paid()
  const unsigned = { network, bytes, inputs }
  assert.deepEqual(await recorded(), {
    hash: null,
    recorded: { unsigned, signatures: null, signed: null },
  })
  const signatures = [{ signature: 'ab'.repeat(64), recovery_id: 0 }]
  bench.store.append('signed', { step_height: step.height, signatures, hash: 'h', raw: '02' })
  assert.deepEqual(await recorded(), {
    hash: 'h',
    recorded: { unsigned, signatures, signed: { raw: '02', hash: 'h' } },
  })
})

test('a step that was received from a peer counts, but its request does not', async (t) => {
  const request = await asksPay(mine)
  bench.judge.admit(await bench.verdict(pay(request), paid()), SESSION)
  const row = bench.store.record.page(bench.store.record.height, 1)[0]!
  const {
    purpose: _p,
    workspace: _w,
    key_id: _k,
    unsigned: _u,
    partner: _n,
    peer_head: _h,
    ...body
  } = JSON.parse(row.body)
  const other = new Bench(1)
  t.after(() => {
    other.close()
  })
  other.caller(1, { api_key: mine.api_key })
  other.store.append('imported', { at: row.at, kind: 'step', body, from: 2 })
  const verdict = await other.verdict(pay(request), paid(1))
  const refusal = said(() => other.judge.assertAllowed(verdict)) as { detail: object }
  assert.deepEqual(refusal.detail, {
    hash: null,
    recorded: { unsigned: null, signatures: null, signed: null },
  })
})

test('stores a finished signature before signing the transaction again', async () => {
  const request = await asksPay(mine)
  const verdict = await bench.verdict(pay(request), paid())
  const step = bench.judge.admit(verdict, SESSION)
  bench.store.appendSoon('signed', {
    step_height: step.height,
    signatures: [],
    hash: 'h',
    raw: '02',
  })
  const stored = bench.judge.assertAllowed(verdict)
  assert.equal(stored, step)
  assert.equal(stored?.signed?.hash, 'h')
  // A transaction that is signed already needs no write to the disk.
  const { height } = bench.store.record
  bench.store.appendSoon('revoke', { api_key: 'other' })
  bench.judge.assertAllowed(verdict)
  assert.equal(bench.store.record.height, height)
})

test('checks every rule of the record: nonce gaps, expiries, reused nonces, seen requests', async () => {
  const request = await asksPay(mine, { sequence_id: 'a' })
  assert.match((await bench.codeOf(pay(request), paid(1))) as string, /^NONCE_GAP: /)
  assert.equal(await bench.codeOf(pay(request), paid()), null)
  const again = await asksPay(mine, { sequence_id: 'b' }, { nonce: request.nonce })
  assert.equal(
    await bench.codeOf(pay(again), paid(1)),
    'INTENT_CONFLICT: This API key used the nonce for another request',
  )
  const other = await asksPay(mine, { sequence_id: 'a', amount: 2 })
  assert.equal(
    await bench.codeOf(pay(other), paid(1, { value: 2n * ONE })),
    'INTENT_CONFLICT: The same sequence_id was used for another payment',
  )
  const alias = await asksPay(mine, { sequence_id: 'a' })
  assert.equal(
    await bench.codeOf(pay(alias), paid()),
    null,
    'another request of the same meaning: the same payment',
  )
  const rule = await asksRule(mine, { daily_cap: 1 })
  const forward = (id: string, nonce: number) =>
    bench.codeOf(
      { kind: 'forward', id, rule: rule.request },
      eth(path, { to: SINK_ETH, value: ONE, nonce }),
    )
  assert.match(
    (await forward('11111111-1111-4111-8111-111111111111', 1)) as string,
    /^FORWARD_CAP: /,
  )
})
