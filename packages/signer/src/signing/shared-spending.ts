import { z } from 'zod'
import { Refusal } from '../errors.ts'
import { WINDOW_MS, type OtherCharges } from '../policy/budget.ts'
import type { Verdict } from '../policy/order.ts'
import { RUN_MAX } from '../policy/run.ts'
import { CHARGES_MAX, count, digits } from '../store/entries/values.ts'
import type { Store } from '../store/index.ts'
import { Spending, type Charged, type ChargedStep } from '../store/spending.ts'
import type { Peers } from '../transport/peers.ts'
import { Slots } from './slots.ts'

const CALL = '/peer/spending'
/** Greatest difference of the clocks of two nodes that judge a limit together. */
const CLOCK_DIFFERENCE_MAX_MS = 60_000
/**
 * Time for which a charge of another node counts beyond the window. It covers the difference of the
 * clocks, and the way of the message.
 */
const SLACK_MS = 120_000
/** Maximum number of steps in one message; more are read page by page. */
export const TOLD_MAX = 200
const PAGE_MAX = 500
/** Maximum number of pages that are read in a row from a peer. */
const PAGES_MAX = 4000
/** Maximum number of steps that are kept for a peer, about 300 MB. */
const KEPT_MAX = 1_000_000
/** Both peers' sessions, each a run at most. */
const PENDING_MAX = 2 * Slots.sessionsMax * RUN_MAX

const text = z.string().max(4096)
const pendingSchema = z.strictObject({
  step: text,
  transaction: text,
  charges: z.array(z.strictObject({ budget: text, amount: digits })).max(CHARGES_MAX),
})
/** `age_ms`: time since it was recorded, which does not depend on the sender's clock. */
const recordedSchema = z.strictObject({
  ...pendingSchema.shape,
  height: count,
  age_ms: z.int(),
})

/**
 * What a node tells its partner with an order that counts against a limit, and with its answer.
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
interface Peer {
  known: Known
  /** Height of this node's own record up to which the peer knows its steps, in its start `boot`. */
  acknowledged: { boot: string | null; height: number } | null
  /** Start of the peer for which it is known whether it can tell its spending, and the result. */
  able: { boot: string | null; isAble: boolean } | null
  /** Resolves when the peer's steps have been read to the end of its record. */
  reading: Promise<void> | null
}

interface Parts {
  store: Store
  peers: Pick<Peers, 'call' | 'handle' | 'nodes' | 'bootOf'>
  /** Timeout in milliseconds for reading a page from a peer. */
  timeoutMs: number
}

/**
 * Makes limits of a time window hold for all pairs of nodes together. Two nodes sign, so the records
 * of any two nodes together contain all signatures: the nodes of a pair tell each other what is on
 * their records, and what they are about to record, before each of them judges an order that counts
 * against a limit. A transaction that both know counts once.
 *
 * Telling only the steps with the third node would not be sufficient: a step that a participant has
 * recorded, and whose coordinator gave up, is unknown to that coordinator, and may be signed later
 * by another pair.
 */
export class SharedSpending {
  readonly #parts: Parts
  readonly #peers = new Map<number, Peer>()
  readonly #pending = new Set<readonly Verdict[]>()

  constructor(parts: Parts) {
    this.#parts = parts
    for (const node of parts.peers.nodes)
      this.#peers.set(node, { known: nothing(0), acknowledged: null, able: null, reading: null })
    parts.peers.handle(CALL, async (_node, body) =>
      this.#page(z.strictObject({ after: count }).parse(body).after),
    )
  }

  /**
   * Reads what is on the record of a peer that was started, once. An older version cannot tell it;
   * then each node of the pair counts its own record only.
   * @returns whether the peer can tell its spending
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
   */
  begin(verdicts: readonly Verdict[]): () => void {
    const session = [...verdicts]
    this.#pending.add(session)
    return () => {
      this.#pending.delete(session)
    }
  }

  /** Returns what the peer must know before it judges transactions, or is answered about them. */
  tell(node: number, verdicts: readonly Verdict[]): Told {
    const { store, peers } = this.#parts
    const { known, acknowledged } = this.#peers.get(node)!
    const { height: to } = store.record
    const isCurrent = acknowledged !== null && acknowledged.boot === peers.bootOf(node)
    const from = isCurrent ? acknowledged.height : to
    const steps = store.state.spending.stepsAfter(from, TOLD_MAX + 1)
    const isTooLong = steps.length > TOLD_MAX
    store.state.spending.drop(store.clock() - WINDOW_MS - SLACK_MS)
    return {
      clock: store.clock(),
      generation: store.state.generation,
      known: { generation: known.generation, height: known.height },
      // If there are too many, the peer reads them page by page.
      from: isTooLong ? to : from,
      to,
      steps: isTooLong ? [] : this.#wired(steps),
      pending: this.#pendingWithout(verdicts).map(({ step, unsignedHash, charges }) => ({
        step,
        transaction: unsignedHash,
        charges: charges.map(({ budget, amount }) => ({ budget, amount: amount.toString() })),
      })),
    }
  }

  /**
   * Takes what a peer has told, and reads from it what is missing.
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
    if (peer.known.generation !== told.generation) peer.known = nothing(told.generation)
    if (told.from <= peer.known.height) this.#take(peer, told.steps, told.to)
    // A read that had begun before may have ended below that height.
    for (let times = 0; times < 2 && peer.known.height < told.to; times++) await this.#read(node)
    if (peer.known.height < told.to) throw unknownFormat(node)
    return this.other(node, verdicts, told.pending)
  }

  /**
   * Returns the charges that count besides this node's record: those that a peer has told, and those
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
    const told = pendingOfPeer.flatMap((step) => chargesOf(step, at))
    const led = this.#pendingWithout(verdicts).flatMap(({ step, unsignedHash, charges }) =>
      charges.map(({ budget, amount }) => ({
        budget,
        amount,
        at,
        step,
        transaction: unsignedHash,
      })),
    )
    const inProgress = [...told, ...led]
    return (budget) =>
      [
        ...spending.since(budget, store.clock() - WINDOW_MS - SLACK_MS),
        ...inProgress.filter((charge) => charge.budget === budget),
      ].filter(({ transaction }) => !transactions.has(transaction))
  }

  #pendingWithout(verdicts: readonly Verdict[]): Verdict[] {
    const transactions = new Set(verdicts.map(({ unsignedHash }) => unsignedHash))
    return [...this.#pending].flat().filter(({ unsignedHash }) => !transactions.has(unsignedHash))
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
      const answer = await peers.call(node, CALL, { after }, { timeout: timeoutMs })
      const parsed = pageSchema.safeParse(answer)
      if (!parsed.success) throw unknownFormat(node)
      const told = parsed.data
      if (peer.known.generation === told.generation) {
        this.#take(peer, told.steps, told.to)
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
    const steps = store.state.spending.stepsAfter(after, PAGE_MAX + 1)
    const isLast = steps.length <= PAGE_MAX
    const shown = steps.slice(0, PAGE_MAX)
    return {
      generation: store.state.generation,
      to: isLast ? Math.max(store.record.height, after) : shown.at(-1)!.height,
      is_last: isLast,
      steps: this.#wired(shown),
    }
  }

  #take(peer: Peer, steps: readonly Recorded[], to: number): void {
    const { known } = peer
    const clock = this.#parts.store.clock()
    for (const step of steps) {
      if (step.height <= known.height || step.height > to) continue
      known.spending.add({
        height: step.height,
        charges: chargesOf(step, clock - Math.max(0, step.age_ms)),
      })
    }
    known.height = Math.max(known.height, to)
    known.spending.drop(clock - WINDOW_MS - SLACK_MS)
    if (known.spending.size > KEPT_MAX) {
      peer.known = nothing(known.generation)
      peer.able = null
      throw new Refusal('TOO_BUSY', 'A peer has told more charges than this node keeps')
    }
  }

  #wired(steps: readonly ChargedStep[]): Recorded[] {
    const now = this.#parts.store.clock()
    return steps
      .filter(({ charges: [first] }) => first!.at >= now - WINDOW_MS - SLACK_MS)
      .map(({ height, charges }) => ({
        height,
        step: charges[0]!.step,
        transaction: charges[0]!.transaction,
        age_ms: now - charges[0]!.at,
        charges: charges.map(({ budget, amount }) => ({ budget, amount: amount.toString() })),
      }))
  }
}

const nothing = (generation: number): Known => ({
  generation,
  height: 0,
  spending: new Spending(),
})

const chargesOf = ({ step, transaction, charges }: Pending, at: number): Charged[] =>
  charges.map(({ budget, amount }) => ({ budget, amount: BigInt(amount), at, step, transaction }))

const unknownFormat = (node: number): Refusal =>
  new Refusal(
    'PEER_UNAVAILABLE',
    `The spending that peer node ${node} told has an unknown format`,
    { node },
  )
