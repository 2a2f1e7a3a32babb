import { Refusal } from '../src/errors.ts'
import { assertBudget, NO_OTHERS, type OtherCharges } from '../src/policy/budget.ts'
import type { Verdict, WindowCharge } from '../src/policy/order.ts'
import { recordedPolicy, uncoveredCharges, usesOf } from '../src/policy/governed/windows.ts'
import { windowChargesOf } from '../src/store/charges.ts'
import type { Store } from '../src/store/index.ts'
import { Spending } from '../src/store/spending.ts'
import type { PeerHandler } from '../src/transport/peers.ts'
import { SharedSpending, toldSchema, type Told } from '../src/signing/shared-spending.ts'

/**
 * Three nodes with the real exchange, limits and charges. Only the transport, the record and the
 * time are replaced: each message waits until the schedule delivers it.
 */
const NOW = 1_800_000_000_000
/** Time after which a session ends, in milliseconds, as in a node's configuration. */
const SESSION_MS = 30_000
const HOUR_MS = 3_600_000

/** The time of all nodes, in Unix ms. */
export interface ModelTime {
  ms: number
}

/** Limits by key of a window. */
export type WindowLimits = ReadonlyMap<string, bigint>

/**
 * What a node charges if a transaction is on its record already: all that its record does not cover
 * (`uncoveredCharges`). The other values are faults: only windows to which it never charged the
 * transaction, or nothing.
 */
export type Recharge = 'uncovered' | 'other windows' | 'never'

export class ModelNode {
  readonly node: number
  readonly spending = new Spending()
  readonly recorded = new Set<string>()
  readonly record = { height: 0 }
  boot = 1
  aheadMs = 0
  /** Hides its charges, and refuses nothing. */
  isHostile = false
  /** Maximum memory for the charges of both peers, in bytes; undefined: that of a real node. */
  keptBytesMax: number | undefined = undefined
  limits: WindowLimits = new Map()
  recharge: Recharge = 'uncovered'
  shared!: SharedSpending
  handlers = new Map<string, PeerHandler>()
  readonly store: Store

  constructor(node: number, time: ModelTime = { ms: NOW }) {
    this.node = node
    const state = { spending: this.spending, generation: 0 }
    const clock = (): number => time.ms + this.aheadMs
    this.store = { state, record: this.record, clock } as unknown as Store
  }

  start(nodes: ReadonlyMap<number, ModelNode>, wait: () => Promise<void>): void {
    this.boot++
    this.handlers = new Map()
    this.shared = new SharedSpending({
      store: this.store,
      timeoutMs: 1000,
      ...(this.keptBytesMax === undefined ? {} : { keptBytesMax: this.keptBytesMax }),
      peers: {
        nodes: [1, 2, 3].filter((other) => other !== this.node),
        bootOf: (other) => String(nodes.get(other)!.boot),
        headOf: (node) => {
          const { record, store } = nodes.get(node)!
          const { generation } = store.state
          return { node, height: record.height, hash: '', generation, proof: null as never }
        },
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

  /** @throws Refusal BUDGET if a limit does not permit the transaction */
  assertAllowed(verdict: Verdict, other: OtherCharges): void {
    if (this.isHostile) return
    if (!this.recorded.has(verdict.unsignedHash))
      assertBudget(this.store.state, verdict, this.store.clock(), { other })
    for (const charge of this.#toCharge(verdict)) this.#assertWindow(verdict, charge, other)
  }

  #assertWindow({ step, order }: Verdict, charge: WindowCharge, other: OtherCharges): void {
    const records = {
      own: this.spending,
      other,
      ahead: [],
      workspace: order.workspace,
      clockMs: this.store.clock(),
    }
    let sum = 0n
    let amount = charge.amounts.get('BTC')!
    for (const use of usesOf(records, charge)) {
      const units = use.amounts.get('BTC')!
      if (use.step !== step) sum += units
      else if (units > amount) amount = units
    }
    if (sum + amount > this.limits.get(charge.key)!)
      throw new Refusal('BUDGET', `The window ${charge.key} is full`)
  }

  /** Returns the charges to windows that are judged and recorded before a signature. */
  #toCharge(verdict: Verdict): readonly WindowCharge[] {
    if (!verdict.policy) return []
    if (!this.recorded.has(verdict.unsignedHash)) return verdict.policy.charges
    if (this.recharge === 'never') return []
    const records = {
      own: this.spending,
      workspace: verdict.order.workspace,
      clockMs: this.store.clock(),
    }
    const uncovered = uncoveredCharges(records, verdict)
    return this.recharge === 'uncovered'
      ? uncovered
      : uncovered.filter(({ key }) => !this.#hasCharged(verdict, key))
  }

  #hasCharged({ step }: Verdict, key: string): boolean {
    return this.spending.steps.some(({ windows = [] }) =>
      windows.some((each) => each.step === step && each.window.includes(JSON.stringify(key))),
    )
  }

  write(verdict: Verdict): void {
    const { step, unsignedHash, charges, policy } = verdict
    const isKnown = this.recorded.has(unsignedHash)
    const at = this.store.clock()
    const windows =
      policy &&
      windowChargesOf(
        {
          step,
          unsigned_hash: unsignedHash,
          workspace: verdict.order.workspace,
          policy: recordedPolicy({ ...policy, charges: this.#toCharge(verdict) }),
        },
        at,
      )
    this.recorded.add(unsignedHash)
    this.spending.add({
      height: ++this.record.height,
      charges: isKnown
        ? []
        : charges.map(({ budget, amount }) => ({
            budget,
            amount,
            at,
            step,
            transaction: unsignedHash,
          })),
      windows: windows ?? [],
    })
  }

  tell(node: number, verdicts: readonly Verdict[]): Told {
    const told = toldSchema.parse(JSON.parse(JSON.stringify(this.shared.tell(node, verdicts))))
    return this.isHostile ? { ...told, steps: [], pending: [] } : told
  }
}

/** Random numbers with a seed (mulberry32). */
export function randomOf(seed: number): (below: number) => number {
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

export interface ModelOptions {
  random: (below: number) => number
  /** Returns the transaction of the next session. */
  next: () => Verdict
  sessions: number
  isTold: boolean
  hostile: number | null
  /** Messages are lost and nodes are restarted. */
  faults: boolean
  /** Hours may pass between messages. */
  isLong?: boolean
  limits?: WindowLimits
  recharge?: Recharge
}
/** A transaction that two nodes have signed. `at` in Unix ms. */
export interface Signed {
  verdict: Verdict
  at: number
}

/** Runs sessions of random pairs, interleaved at each message. */
export class ModelRun {
  readonly signed: Signed[] = []
  readonly #options: ModelOptions
  readonly #time: ModelTime = { ms: NOW }
  readonly #nodes: ReadonlyMap<number, ModelNode>
  readonly #waiting: (() => void)[] = []
  readonly #wait = (): Promise<void> =>
    new Promise((resolve) => {
      this.#waiting.push(resolve)
    })

  constructor(options: ModelOptions) {
    this.#options = options
    this.#nodes = new Map([1, 2, 3].map((node) => [node, new ModelNode(node, this.#time)]))
    for (const node of this.#nodes.values()) {
      node.start(this.#nodes, this.#wait)
      node.isHostile = node.node === options.hostile
      node.limits = options.limits ?? new Map()
      node.recharge = options.recharge ?? 'uncovered'
      if (options.isLong) node.aheadMs = options.random(40_000)
    }
  }

  /** @returns what was signed, in the order of time */
  async run(): Promise<readonly Signed[]> {
    const { random, faults, isLong, sessions } = this.#options
    const running: Promise<void>[] = []
    let ended = 0
    const begin = (): void => {
      const session = this.#one().finally(() => {
        ended++
      })
      session.catch(() => {})
      running.push(session)
    }
    while (ended < sessions) {
      // Without much time, all sessions begin together.
      while (running.length < sessions && (!isLong || random(8) === 0)) begin()
      if (this.#waiting.length > 0) this.#waiting.splice(random(this.#waiting.length), 1)[0]!()
      // A restarted node has lost what it knew, and what it was about to sign.
      if (faults && random(25) === 0) this.#nodes.get(1 + random(3))!.start(this.#nodes, this.#wait)
      if (isLong && random(4) === 0) this.#time.ms += random(4000)
      if (isLong && random(40) === 0) this.#time.ms += random(60 * HOUR_MS)
      await new Promise(setImmediate)
    }
    await Promise.all(running)
    return this.signed
  }

  async #one(): Promise<void> {
    const { random, next } = this.#options
    await this.#wait()
    const from = 1 + random(3)
    const to = 1 + ((from + random(2)) % 3)
    try {
      await this.#session(this.#nodes.get(from)!, this.#nodes.get(to)!, next())
    } catch (error) {
      const isRefused = error instanceof Refusal && ['BUDGET', 'CLOCK'].includes(error.code)
      if (!(error instanceof Lost) && !isRefused) throw error
    }
  }

  async #session(c: ModelNode, p: ModelNode, verdict: Verdict): Promise<void> {
    const { isTold } = this.#options
    const verdicts = [verdict]
    const { shared } = c
    if (isTold) await shared.prepare(p.node)
    await this.#message(c, p)
    c.assertAllowed(verdict, isTold ? shared.other(p.node, verdicts) : NO_OTHERS)
    const end = shared.begin(verdicts)
    try {
      const told = c.tell(p.node, verdicts)
      await this.#message(c, p)
      const boot = p.boot
      const other = isTold ? await p.shared.hear(c.node, told, verdicts) : NO_OTHERS
      if (p.boot !== boot) throw new Lost()
      p.assertAllowed(verdict, other)
      const openedAt = this.#time.ms
      p.write(verdict)
      const answer = p.tell(c.node, verdicts)
      await this.#message(c, p)
      const mine = isTold ? await shared.hear(p.node, answer, verdicts) : NO_OTHERS
      if (c.shared !== shared || this.#time.ms > openedAt + SESSION_MS) throw new Lost()
      c.assertAllowed(verdict, mine)
      c.write(verdict)
      this.signed.push({ verdict, at: this.#time.ms })
    } finally {
      end()
    }
  }

  /** Waits until a message is delivered. Throws if it is lost. */
  async #message(...ends: ModelNode[]): Promise<void> {
    const { random, faults } = this.#options
    const boots = ends.map(({ boot }) => boot)
    await this.#wait()
    if (ends.some(({ boot }, at) => boot !== boots[at]) || (faults && random(6) === 0))
      throw new Lost()
  }
}
