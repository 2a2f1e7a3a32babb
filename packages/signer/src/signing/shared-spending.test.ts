import assert from 'node:assert/strict'
import test from 'node:test'
import { Refusal } from '../errors.ts'
import { assertBudget, WINDOW_MS } from '../policy/budget.ts'
import type { Verdict } from '../policy/order.ts'
import type { Store } from '../store/index.ts'
import { Spending } from '../store/spending.ts'
import type { PeerHandler } from '../transport/peers.ts'
import { SharedSpending, TOLD_MAX, toldSchema, type Told } from './shared-spending.ts'

/**
 * Three nodes with the real exchange, limits and charges. Only the transport and the record are
 * replaced: each message waits until the schedule delivers it.
 */
const NOW = 1_800_000_000_000
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
  }) as unknown as Verdict

class ModelNode {
  readonly node: number
  readonly spending = new Spending()
  readonly recorded = new Set<string>()
  readonly record = { height: 0 }
  boot = 1
  aheadMs = 0
  /** Hides its charges, and refuses nothing. */
  isHostile = false
  shared!: SharedSpending
  handlers = new Map<string, PeerHandler>()
  readonly store: Store

  constructor(node: number) {
    this.node = node
    const state = { spending: this.spending, generation: 0 }
    this.store = { state, record: this.record, clock: () => NOW + this.aheadMs } as unknown as Store
  }

  start(nodes: ReadonlyMap<number, ModelNode>, wait: () => Promise<void>): void {
    this.boot++
    this.handlers = new Map()
    this.shared = new SharedSpending({
      store: this.store,
      timeoutMs: 1000,
      peers: {
        nodes: [1, 2, 3].filter((other) => other !== this.node),
        bootOf: (other) => String(nodes.get(other)!.boot),
        handle: (call, handler) => {
          this.handlers.set(call, handler)
        },
        call: async <T>(other: number, call: string, body: unknown): Promise<T> => {
          await wait()
          const peer = nodes.get(other)!
          const answer = await peer.handlers.get(call)!(
            this.node,
            body,
            undefined as never,
            Buffer.alloc(0),
          )
          await wait()
          const told = JSON.parse(JSON.stringify(answer)) as object
          return (peer.isHostile ? { ...told, steps: [] } : told) as T
        },
      },
    })
  }

  assertAllowed(verdict: Verdict, other: ReturnType<SharedSpending['other']>): void {
    if (this.isHostile || this.recorded.has(verdict.unsignedHash)) return
    assertBudget(this.store.state, verdict, this.store.clock(), { other })
  }

  write({ step, unsignedHash, charges }: Verdict): void {
    if (this.recorded.has(unsignedHash)) return
    this.recorded.add(unsignedHash)
    this.spending.add({
      height: ++this.record.height,
      charges: charges.map(({ budget, amount }) => ({
        budget,
        amount,
        at: this.store.clock(),
        step,
        transaction: unsignedHash,
      })),
    })
  }

  tell(node: number, verdicts: readonly Verdict[]): Told {
    const told = toldSchema.parse(JSON.parse(JSON.stringify(this.shared.tell(node, verdicts))))
    return this.isHostile ? { ...told, steps: [], pending: [] } : told
  }
}

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

/** Random numbers with a seed (mulberry32). */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

/** Thrown where a message is lost or a node is killed. */
class Lost extends Error {}

/**
 * Runs sessions of random pairs, interleaved at each message, and returns the amount that was
 * signed.
 */
async function signedIn(options: Options): Promise<bigint> {
  const { limit, kind, isTold, faults } = options
  const random = randomOf(options.seed)
  const nodes = new Map([1, 2, 3].map((node) => [node, new ModelNode(node)]))
  const waiting: (() => void)[] = []
  const wait = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve)
    })
  const message = async (...ends: ModelNode[]): Promise<void> => {
    const boots = ends.map(({ boot }) => boot)
    await wait()
    if (ends.some(({ boot }, at) => boot !== boots[at]) || (faults && random(6) === 0))
      throw new Lost()
  }
  for (const node of nodes.values()) node.start(nodes, wait)
  if (options.hostile) nodes.get(options.hostile)!.isHostile = true
  // Two transactions of a payment exclude each other if the limit counts the largest.
  const payments = Array.from({ length: options.payments }, (_, at): Payment => ({
    step: kind === 'largest' ? `s${at >> 1}` : `s${at}`,
    transaction: `t${at}`,
    amount: BigInt(1 + random(2)),
  }))
  const signed = new Map<string, Payment>()

  const session = async (c: ModelNode, p: ModelNode, payment: Payment): Promise<void> => {
    const verdicts = [verdictOf(payment, limit, kind)]
    const [verdict] = verdicts as [Verdict]
    const { shared } = c
    if (isTold) await shared.prepare(p.node)
    await message(c, p)
    c.assertAllowed(verdict, isTold ? shared.other(p.node, verdicts) : () => [])
    const end = shared.begin(verdicts)
    try {
      const told = c.tell(p.node, verdicts)
      await message(c, p)
      const boot = p.boot
      const other = isTold ? await p.shared.hear(c.node, told, verdicts) : () => []
      if (p.boot !== boot) throw new Lost()
      p.assertAllowed(verdict, other)
      p.write(verdict)
      const answer = p.tell(c.node, verdicts)
      await message(c, p)
      const mine = isTold ? await shared.hear(p.node, answer, verdicts) : () => []
      if (c.shared !== shared) throw new Lost()
      c.assertAllowed(verdict, mine)
      c.write(verdict)
      signed.set(payment.transaction, payment)
    } finally {
      end()
    }
  }

  const one = async (): Promise<void> => {
    await wait()
    const from = 1 + random(3)
    const to = 1 + ((from + random(2)) % 3)
    const [c, p] = [nodes.get(from)!, nodes.get(to)!]
    try {
      await session(c, p, payments[random(payments.length)]!)
    } catch (error) {
      if (!(error instanceof Lost) && !(error instanceof Refusal && error.code === 'BUDGET'))
        throw error
    }
  }
  let isDone = false
  const all = Promise.all(Array.from({ length: options.sessions }, one)).finally(() => {
    isDone = true
  })
  all.catch(() => {})
  while (!isDone) {
    if (waiting.length > 0) waiting.splice(random(waiting.length), 1)[0]!()
    // A restarted node has lost what it knew, and what it was about to sign.
    if (faults && random(25) === 0) nodes.get(1 + random(3))!.start(nodes, wait)
    await new Promise(setImmediate)
  }
  await all
  const sums = new Map<string, bigint>()
  for (const { step, transaction, amount } of signed.values()) {
    const key = kind === 'largest' ? step : transaction
    const before = sums.get(key) ?? 0n
    sums.set(key, kind === 'largest' && before > amount ? before : amount)
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

test('without what the other node tells, the pairs exceed the limit', async () => {
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
  for (const aheadMs of [60_001, -60_001, 3_600_000]) {
    two.aheadMs = aheadMs
    await assert.rejects(two.shared.hear(1, one.tell(2, []), []), { code: 'CLOCK', status: 503 })
  }
})

test('a charge of another node counts for a day and two minutes more, by the receiver’s clock', async () => {
  const [one, two] = twoNodes()
  one.write(payment('a'))
  two.aheadMs = 30_000
  one.aheadMs = 1000
  const other = await two.shared.hear(1, one.tell(2, []), [])
  assert.deepEqual(amountsOf(other(BUDGET)), ['a'])
  const counts = (aheadMs: number): string[] => {
    two.aheadMs = aheadMs
    return amountsOf(two.shared.other(1, [])(BUDGET))
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
  assert.deepEqual(amountsOf(two.shared.other(1, [])(BUDGET)), [...names].sort())
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
  assert.equal(two.shared.other(1, [])(BUDGET).length, names.length + 1)
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
  assert.equal(heard[2](BUDGET).length, 600)
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
  assert.deepEqual(amountsOf(other(BUDGET)), ['a'])
  assert.deepEqual(amountsOf(one.shared.other(2, [b])(BUDGET)), ['a'])
  assert.deepEqual(amountsOf(one.shared.other(2, [a])(BUDGET)), ['b', 'b'])
  end()
  assert.deepEqual(amountsOf(one.shared.other(2, [b])(BUDGET)), [])
  one.write(b)
  assert.deepEqual(amountsOf((await two.shared.hear(1, one.tell(2, [b]), [b]))(BUDGET)), [])
  assert.deepEqual(amountsOf(two.shared.other(1, [a])(BUDGET)), ['b'])
})

test('a restored peer tells its new record from the beginning', async () => {
  const [one, two] = twoNodes()
  one.write(payment('a'))
  one.write(payment('b'))
  await two.shared.prepare(1)
  one.store.state.generation = 1
  const told = one.tell(2, [])
  assert.deepEqual(amountsOf((await two.shared.hear(1, told, []))(BUDGET)), ['a', 'b'])
  // This node's knowledge is told with the generation, and does not count for another record.
  const known = two.tell(1, []).known
  assert.deepEqual(known, { generation: 1, height: 2 })
  await one.shared.hear(2, { ...two.tell(1, []), known: { generation: 0, height: 2 } }, [])
  assert.equal(one.tell(2, []).from, 0)
})

test('an earlier version is not told anything, and a malformed answer is an error of the peer', async () => {
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
  // It is asked again after it was upgraded.
  const height = one.record.height
  const nodes = new Map([
    [1, one],
    [2, two],
  ])
  one.start(nodes, async () => {})
  assert.equal(await two.shared.prepare(1), true)
  assert.equal(one.record.height, height)
})
