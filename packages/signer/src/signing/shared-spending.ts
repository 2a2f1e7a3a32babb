import { z } from 'zod'
import { Refusal } from '../errors.ts'
import type { OtherCharges } from '../policy/budget.ts'
import type { Verdict } from '../policy/order.ts'
import { RUN_MAX } from '../store/entries/values.ts'
import { digitsOf } from '../policy/governed/windows.ts'
import { withAmounts } from '../store/charges.ts'
import { chargedAmounts, CHARGES_MAX, count, digits, text } from '../store/entries/values.ts'
import type { Store } from '../store/index.ts'
import { pageAbove, type Page, type PageLimits } from '../store/page.ts'
import {
  BUDGET_KEPT_MS,
  Spending,
  windowName,
  WINDOW_KEPT_MS,
  type Charged,
  type ChargedStep,
  type ChargedWindow,
} from '../store/spending.ts'
import type { Peers } from '../transport/peers.ts'
import { Slots } from './slots.ts'

const CALL = '/peer/spending'
/** Greatest difference of the clocks of two nodes that judge a limit together. */
const CLOCK_DIFFERENCE_MAX_MS = 60_000
/** Maximum number of steps in one message with an order; more are read page by page. */
export const TOLD_MAX = 200
/** Limits of the steps with an order; sizes in bytes. The largest step has less than 1 MiB. */
const TOLD_LIMITS: PageLimits = { entries: TOLD_MAX, size: 2 * 1024 * 1024 }
const PAGE_MAX = 500
/** Limits of a page of steps; sizes in bytes. */
const PAGE_LIMITS: PageLimits = { entries: PAGE_MAX, size: 8 * 1024 * 1024 }
/** Maximum number of pages that are read in a row from a peer. */
const PAGES_MAX = 4000
/**
 * Maximum memory for the charges of both peers together: about 1,200,000 steps, or 600,000 with four
 * windows of a policy. That is less than a node can sign in seven days at full speed. Each peer can
 * always use its half, so that one peer cannot displace the other.
 */
const KEPT_BYTES_MAX = 512 * 1024 * 1024
/** Time for which a peer is not read that has sent more than fits, in milliseconds. */
const FULL_MS = 60_000
/** Height by which a peer's spending may exceed the newest head that the peer has signed. */
const AHEAD_MAX = 10_000
/** Both peers' sessions, each a run at most. */
const PENDING_MAX = 2 * Slots.sessionsMax * RUN_MAX
/**
 * Maximum size of the sessions that a node leads. With the steps it fits into a call besides the
 * largest order, and into an answer.
 */
const PENDING_BYTES_MAX = 4 * 1024 * 1024

const pendingSchema = z.strictObject({
  step: text,
  transaction: text,
  charges: z.array(z.strictObject({ budget: text, amount: digits })).max(CHARGES_MAX),
  /**
   * Charges to windows of a policy; absent if there are none. A name contains a key of 1000
   * characters and a workspace, in which each character may be escaped.
   */
  windows: z
    .array(z.strictObject({ budget: z.string().max(32_768), amounts: chargedAmounts }))
    .max(CHARGES_MAX)
    .optional(),
})
/** `age_ms`: time since it was recorded, which does not depend on the sender's clock. */
const recordedSchema = z.strictObject({
  ...pendingSchema.shape,
  height: count,
  age_ms: z.int(),
})

/**
 * What a node sends its partner with an order that counts against a limit, and with its answer.
 * `known`: position in the receiver's record up to which the sender knows its steps. `steps`: the
 * steps on the sender's record above the height `from`, up to the height `to`, as far as they still
 * count. `pending`: transactions that the sender is leading now and has not recorded, without those
 * of this order.
 */
export const toldSchema = z.strictObject({
  clock: z.int(),
  generation: count,
  known: z.strictObject({ generation: count, height: count }),
  from: count,
  to: count,
  steps: z.array(recordedSchema).max(TOLD_MAX),
  pending: z.array(pendingSchema).max(PENDING_MAX),
})
export type Told = z.infer<typeof toldSchema>
const pageSchema = z.strictObject({
  generation: count,
  to: count,
  is_last: z.boolean(),
  steps: z.array(recordedSchema).max(PAGE_MAX),
})

type Pending = z.infer<typeof pendingSchema>
type Recorded = z.infer<typeof recordedSchema>

/** What this node knows of a peer's record. */
interface Known {
  generation: number
  /** Height up to which all steps are known. */
  height: number
  spending: Spending
}
/** A session that this node leads, as it is sent to peers, with its size in bytes. */
interface Led {
  steps: readonly Pending[]
  bytes: number
}
interface Peer {
  known: Known
  /** Height of this node's own record up to which the peer knows its steps, in its start `boot`. */
  acknowledged: { boot: string | null; height: number } | null
  /** Start of the peer for which it is known whether it can send its spending, and the result. */
  able: { boot: string | null; isAble: boolean } | null
  /** Time until which the peer is not read, because it has sent more than fits, in Unix ms. */
  fullUntil: number
  /** Resolves when the peer's steps have been read to the end of its record. */
  reading: Promise<void> | null
}

interface Parts {
  store: Store
  peers: Pick<Peers, 'call' | 'handle' | 'nodes' | 'bootOf' | 'headOf'>
  /** Timeout in milliseconds for reading a page from a peer. */
  timeoutMs: number
  /** Maximum memory for the charges of both peers together, in bytes. */
  keptBytesMax?: number
}

/**
 * Makes limits of a time window hold for all pairs of nodes together. Two nodes sign, so the records
 * of any two nodes together contain all signatures: the nodes of a pair send each other what is on
 * their records, and what they are about to record, before each of them judges an order that counts
 * against a limit. A transaction that both know counts once.
 *
 * Sending only the steps with the third node would not be sufficient: a step that a participant has
 * recorded, and whose coordinator gave up, is unknown to that coordinator, and may be signed later
 * by another pair.
 */
export class SharedSpending {
  readonly #parts: Parts
  readonly #peers = new Map<number, Peer>()
  readonly #led = new Set<Led>()
  #ledBytes = 0

  constructor(parts: Parts) {
    this.#parts = parts
    parts.store.state.spending.drop(parts.store.clock())
    for (const node of parts.peers.nodes)
      this.#peers.set(node, {
        known: nothing(0),
        acknowledged: null,
        able: null,
        fullUntil: 0,
        reading: null,
      })
    parts.peers.handle(CALL, async (_node, body) =>
      this.#page(z.strictObject({ after: count }).parse(body).after),
    )
  }

  /**
   * Reads what is on the record of a peer that was started, once. An older version cannot send it;
   * then each node of the pair counts its own record only.
   * @returns whether the peer can send its spending
   * @throws Refusal
   */
  async prepare(node: number): Promise<boolean> {
    const peer = this.#peers.get(node)!
    const boot = this.#parts.peers.bootOf(node)
    if (peer.able === null || boot === null || peer.able.boot !== boot) {
      const isAble = await this.#read(node).then(
        () => true,
        (error: unknown) => {
          if (error instanceof Refusal && error.code === 'NOT_FOUND') return false
          throw error
        },
      )
      peer.able = { boot: this.#parts.peers.bootOf(node), isAble }
    }
    return peer.able.isAble
  }

  /**
   * Adds transactions that this node is about to have signed. They count from here until the
   * returned function is called, which is when they are on record or given up.
   * @throws Refusal TOO_BUSY if a message could not contain all that is being signed
   */
  begin(verdicts: readonly Verdict[]): () => void {
    const steps = verdicts.map(pendingOf)
    const session = { steps, bytes: steps.reduce((sum, step) => sum + bytesOf(step), 0) }
    const isCharged = steps.some(({ charges, windows }) => charges.length > 0 || windows)
    if (isCharged && this.#ledBytes + session.bytes > PENDING_BYTES_MAX)
      throw new Refusal('TOO_BUSY', 'Too many transactions with limits are being signed')
    this.#led.add(session)
    this.#ledBytes += session.bytes
    return () => {
      if (this.#led.delete(session)) this.#ledBytes -= session.bytes
    }
  }

  /** Returns what the peer must receive with an order about transactions, or with its answer. */
  tell(node: number, verdicts: readonly Verdict[]): Told {
    const { store, peers } = this.#parts
    const { known, acknowledged } = this.#peers.get(node)!
    const { height: to } = store.record
    const isCurrent = acknowledged !== null && acknowledged.boot === peers.bootOf(node)
    const from = isCurrent ? acknowledged.height : to
    const { items: steps, to: end } = this.#stepsAbove(from, TOLD_LIMITS)
    const isTooLong = end !== null
    store.state.spending.drop(store.clock())
    return {
      clock: store.clock(),
      generation: store.state.generation,
      known: { generation: known.generation, height: known.height },
      // If there are too many, the peer reads them page by page.
      from: isTooLong ? to : from,
      to,
      steps: isTooLong ? [] : steps,
      pending: this.#ledWithout(verdicts),
    }
  }

  /**
   * Adds what a peer has sent, and reads from the peer what is missing.
   * @returns the charges that count besides this node's record for these transactions
   * @throws Refusal CLOCK if the clocks of the two nodes differ too much
   */
  async hear(node: number, told: Told, verdicts: readonly Verdict[]): Promise<OtherCharges> {
    const { store, peers } = this.#parts
    const difference = Math.abs(told.clock - store.clock())
    if (difference > CLOCK_DIFFERENCE_MAX_MS) {
      throw new Refusal(
        'CLOCK',
        `The clocks of this node and of node ${node} differ by ${Math.round(difference / 1000)} s: correct them by NTP`,
        { node },
      )
    }
    const peer = this.#peers.get(node)!
    const isOfThisRecord = told.known.generation === store.state.generation
    peer.acknowledged = {
      boot: peers.bootOf(node),
      height: isOfThisRecord ? Math.min(told.known.height, store.record.height) : 0,
    }
    this.#assertNotAhead(node, told)
    if (peer.known.generation !== told.generation) peer.known = nothing(told.generation)
    if (told.from <= peer.known.height) this.#take(node, peer, told.steps, told.to)
    // A read that had begun before may have ended below that height.
    for (let times = 0; times < 2 && peer.known.height < told.to; times++) await this.#read(node)
    if (peer.known.height < told.to) throw unknownFormat(node)
    return this.other(node, verdicts, told.pending)
  }

  /**
   * Returns the charges that count besides this node's record: those that a peer has sent, and those
   * of sessions that this node leads, without these transactions.
   */
  other(
    node: number,
    verdicts: readonly Verdict[],
    pendingOfPeer: readonly Pending[] = [],
  ): OtherCharges {
    const { store } = this.#parts
    const { spending } = this.#peers.get(node)!.known
    const transactions = new Set(verdicts.map(({ unsignedHash }) => unsignedHash))
    const at = store.clock()
    const inProgress = [...pendingOfPeer, ...this.#ledWithout(verdicts)]
    const charges = inProgress.flatMap((step) => chargesOf(step, at))
    const windows = inProgress.flatMap((step) => windowsOf(step, at))
    const isOther = ({ transaction }: { transaction: string }): boolean =>
      !transactions.has(transaction)
    return {
      budget: (name) =>
        [
          ...spending.since(name, store.clock() - BUDGET_KEPT_MS),
          ...charges.filter(({ budget }) => budget === name),
        ].filter(isOther),
      recorded: spending,
      inProgress: (name) => windows.filter(({ window }) => window === name).filter(isOther),
      judged: verdicts.map(({ step, unsignedHash: transaction }) => ({ step, transaction })),
      nonce: () => null,
    }
  }

  /** Returns what counts besides this node's record, by what each peer has sent last. */
  known(): OtherCharges[] {
    return [...this.#peers.keys()].map((node) => this.other(node, []))
  }

  /** Returns the transactions that this node leads, without those of the given verdicts. */
  #ledWithout(verdicts: readonly Verdict[]): Pending[] {
    const transactions = new Set(verdicts.map(({ unsignedHash }) => unsignedHash))
    return [...this.#led]
      .flatMap(({ steps }) => steps)
      .filter(({ transaction }) => !transactions.has(transaction))
  }

  /** Reads a peer's steps to the end of its record. Concurrent calls share one read. */
  #read(node: number): Promise<void> {
    const peer = this.#peers.get(node)!
    peer.reading ??= this.#readPages(node, peer).finally(() => {
      peer.reading = null
    })
    return peer.reading
  }

  async #readPages(node: number, peer: Peer): Promise<void> {
    const { peers, timeoutMs } = this.#parts
    for (let page = 0; page < PAGES_MAX; page++) {
      const { generation, height: after } = peer.known
      if (this.#parts.store.clock() < peer.fullUntil) throw tooManyCharges(node)
      const answer = await peers.call(node, CALL, { after }, { timeout: timeoutMs })
      const parsed = pageSchema.safeParse(answer)
      if (!parsed.success) throw unknownFormat(node)
      const told = parsed.data
      this.#assertNotAhead(node, told)
      if (peer.known.generation === told.generation) {
        this.#take(node, peer, told.steps, told.to)
        if (told.is_last) return
      } else if (peer.known.generation === generation) {
        // The peer was restored; its new record is read from the beginning.
        peer.known = nothing(told.generation)
      }
    }
    throw unknownFormat(node)
  }

  #page(after: number): z.infer<typeof pageSchema> {
    const { store } = this.#parts
    const { items: steps, to } = this.#stepsAbove(after, PAGE_LIMITS)
    return {
      generation: store.state.generation,
      to: to ?? Math.max(store.record.height, after),
      is_last: to === null,
      steps,
    }
  }

  /** Returns a page of the steps on this node's record that still count; sizes in bytes. */
  #stepsAbove(height: number, limits: PageLimits): Page<Recorded> {
    const { store } = this.#parts
    const now = store.clock()
    return pageAbove(
      store.state.spending.steps,
      height,
      (step) => step.height,
      limits,
      (step) => {
        const item = recordedOf(step, now)
        return item && { item, size: bytesOf(item) }
      },
    )
  }

  /**
   * Checks that a peer does not announce steps above the record whose head it has signed.
   * @throws Refusal `PEER_UNAVAILABLE`
   */
  #assertNotAhead(node: number, { generation, to }: Pick<Told, 'generation' | 'to'>): void {
    const head = this.#parts.peers.headOf(node)
    if (head?.generation === generation && to > head.height + AHEAD_MAX) throw unknownFormat(node)
  }

  #take(node: number, peer: Peer, steps: readonly Recorded[], to: number): void {
    const { known } = peer
    const clock = this.#parts.store.clock()
    for (const step of steps) {
      if (step.height <= known.height || step.height > to) continue
      const at = clock - Math.max(0, step.age_ms)
      known.spending.add({
        height: step.height,
        charges: chargesOf(step, at),
        windows: windowsOf(step, at),
      })
    }
    known.height = Math.max(known.height, to)
    known.spending.drop(clock)
    this.#makeRoom()
    if (peer.known !== known) throw tooManyCharges(node)
  }

  /** Drops the charges of the peer that uses more memory, if those of both do not fit. */
  #makeRoom(): void {
    const { keptBytesMax = KEPT_BYTES_MAX, store } = this.#parts
    const peers = [...this.#peers.values()]
    const bytes = peers.reduce((sum, { known }) => sum + known.spending.bytes, 0)
    if (bytes <= keptBytesMax) return
    const [most] = peers.sort((a, b) => b.known.spending.bytes - a.known.spending.bytes)
    most!.known = nothing(most!.known.generation)
    most!.able = null
    most!.fullUntil = store.clock() + FULL_MS
  }
}

const nothing = (generation: number): Known => ({
  generation,
  height: 0,
  spending: new Spending(),
})

/** Returns charges as they travel. */
const wireOf = ({
  step,
  transaction,
  charges,
  windows,
}: {
  step: string
  transaction: string
  charges: readonly Pick<Charged, 'budget' | 'amount'>[]
  windows: readonly Pick<ChargedWindow, 'window' | 'amounts'>[]
}): Pending => ({
  step,
  transaction,
  charges: charges.map(({ budget, amount }) => ({ budget, amount: amount.toString() })),
  ...(windows.length === 0
    ? {}
    : {
        windows: windows.map(({ window, amounts }) => ({
          budget: window,
          amounts: digitsOf(amounts),
        })),
      }),
})

/** Returns a recorded step as it travels, with the charges that still count; null if none does. */
function recordedOf(
  { height, charges, windows = [] }: ChargedStep,
  clockMs: number,
): Recorded | null {
  const { at, step, transaction } = (charges[0] ?? windows[0])!
  const age = clockMs - at
  const counted = {
    charges: age <= BUDGET_KEPT_MS ? charges : [],
    windows: age <= WINDOW_KEPT_MS ? windows : [],
  }
  if (counted.charges.length === 0 && counted.windows.length === 0) return null
  return { height, age_ms: age, ...wireOf({ step, transaction, ...counted }) }
}

const pendingOf = ({ step, unsignedHash, charges, policy, order }: Verdict): Pending =>
  wireOf({
    step,
    transaction: unsignedHash,
    charges,
    windows: (policy?.charges ?? []).map(({ key, amounts }) => ({
      window: windowName(order.workspace, key),
      amounts,
    })),
  })

const bytesOf = (step: Pending): number => Buffer.byteLength(JSON.stringify(step))

const windowsOf = ({ step, transaction, windows = [] }: Pending, at: number): ChargedWindow[] =>
  withAmounts(
    windows.map(({ budget, amounts }) => ({ window: budget, amounts })),
    { at, step, transaction },
  )

const chargesOf = ({ step, transaction, charges }: Pending, at: number): Charged[] =>
  charges.map(({ budget, amount }) => ({ budget, amount: BigInt(amount), at, step, transaction }))

const tooManyCharges = (node: number): Refusal =>
  new Refusal(
    'TOO_BUSY',
    `Node ${node} has sent more charges than this node keeps; it is read again after a minute`,
    { node },
  )

const unknownFormat = (node: number): Refusal =>
  new Refusal(
    'PEER_UNAVAILABLE',
    `The spending that peer node ${node} sent has an unknown format`,
    { node },
  )
