import type { SignatureBytes, SigningItem } from '@custody/chains'
import { authorisationSchema, type OrderAuthorisation } from '@custody/request-auth/orders'
import { ThresholdError } from '@custody/threshold'
import { z } from 'zod'
import { hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import { reason } from '../log.ts'
import type { OtherCharges } from '../policy/budget.ts'
import { orderSchema, type GovernedVerdict, type Order, type Verdict } from '../policy/order.ts'
import { RUN_MAX } from '../store/entries/values.ts'
import type { StepEntry } from '../store/state.ts'
import type { Binding, Header } from '../envelope.ts'
import { Batch, BATCH_ITEMS_MAX, type RoundMessages } from '../sessions/batch.ts'
import { policyToldSchema, type PolicyTold } from '../governance/positions.ts'
import { bindSteps, roundSchema, type SigningParts } from './coordinator.ts'
import { roundsOf, withRounds } from './rounds.ts'
import {
  bindingOf,
  finish,
  itemsOf,
  participantsOf,
  sessionIds,
  split,
  toWire,
  unsignedOf,
} from './items.ts'
import { toldSchema, type Told } from './shared-spending.ts'
import { inputsOf, sizeOf, type Slot } from './slots.ts'

const freshSchema = {
  fresh: z.string().regex(/^[0-9a-f]{64}$/),
  epoch: z.int().min(0),
  /** Absent if the order counts against no limit, and from earlier versions. */
  spending: toldSchema.optional(),
  /** Absent if the sender has no policy on record. */
  policy: policyToldSchema.optional(),
  /** The platform's; absent from earlier versions, and in a recovery. */
  authorisation: authorisationSchema.optional(),
}
const openSchema = z.union([
  z.strictObject({ order: orderSchema, ...freshSchema }),
  z.strictObject({ orders: z.array(orderSchema).min(2).max(RUN_MAX), ...freshSchema }),
])

interface Fresh {
  fresh: string
  epoch: number
  spending?: Told | undefined
  policy?: PolicyTold | undefined
  authorisation?: OrderAuthorisation | null | undefined
}

/** The data that both nodes have agreed on before the first round. */
interface AgreedSession {
  verdicts: readonly GovernedVerdict[]
  items: SigningItem[]
  ids: Buffer[]
  participants: [number, number]
  epoch: number
  partner: number
  binding: Binding
  slot: Slot
  other: OtherCharges
  authorisation: OrderAuthorisation | null
  /** Ends what the session reserves. */
  free: () => void
}

/** A session in progress. */
interface Open extends AgreedSession {
  /** What is on record; empty until a signature can exist. */
  steps: readonly StepEntry[]
  batch: number
  run: Batch | null
  round: number
  /** This side's first round of the batch, until it is sent. */
  first: Promise<RoundMessages[]>
  isBusy: boolean
  signatures: SignatureBytes[]
  timer: NodeJS.Timeout
  /** Removes the registration by which a ban of the partner ends the session. */
  release: () => void
}

/** Returns whether a message is about this key, these paths and digests, and these two nodes. */
const isOf = (header: Header, binding: Binding): boolean =>
  header.key === binding.key &&
  header.path === binding.path &&
  header.digest === binding.digest &&
  header.participants.join() === binding.participants.join()

/**
 * The other node of a pair. It receives the complete order and evaluates it independently, by its
 * own record.
 */
export class Participant {
  readonly #parts: SigningParts
  readonly #open = new Map<string, Open>()

  constructor(parts: SigningParts) {
    this.#parts = parts
  }

  /** Starts to serve coordinators. */
  listen(): void {
    const { peers } = this.#parts
    peers.handle('/peer/sign/open', (node, body, header) => this.#opened(node, body, header))
    peers.handle('/peer/sign/round', (node, body, header, bytes) =>
      this.#round(node, body, header, bytes),
    )
  }

  /** Ends all open sessions. */
  stop(): void {
    for (const session of this.#open.keys()) this.#close(session)
  }

  async #opened(partner: number, body: unknown, header: Header): Promise<unknown> {
    const { bans, slots } = this.#parts
    bans.assertNot(partner)
    const parsed = openSchema.safeParse(body)
    if (!parsed.success) throw new Refusal('BAD_ORDER', 'The order has an unknown format')
    const orders = 'order' in parsed.data ? [parsed.data.order] : parsed.data.orders
    // Reserved before the first await, so that concurrent requests have the same limit as
    // sequential ones.
    const slot = slots.reserve(partner)
    try {
      slot.widen(inputsOf(orders), sizeOf(orders))
      return await this.#begun(partner, orders, parsed.data, header, slot)
    } catch (error) {
      slot.release()
      throw error
    }
  }

  /**
   * Opens a session.
   * @param slot released by the session that is opened with it, or by the caller if none is opened
   * @throws Refusal
   */
  async #begun(
    partner: number,
    orders: readonly Order[],
    { fresh: theirs, epoch, spending: told, policy, authorisation = null }: Fresh,
    header: Header,
    slot: Slot,
  ): Promise<unknown> {
    const { judge, config, store, registry, bans, catchUp, spending, policies } = this.#parts
    const { reservations, platformOrders } = this.#parts
    const pair = { leader: partner, partner: config.node }
    platformOrders.assertAuthorised(orders, { authorisation, ...pair })
    const judged = await judge.judgeAll(orders)
    await catchUp.prepare(judged[0]!, reservations)
    const { workspace } = judged[0]!.order
    const verdicts = await this.#governed(partner, judged, { told, policy })
    const items = itemsOf(registry, verdicts)
    const participants = participantsOf(config.node, partner)
    const binding = bindingOf(verdicts, items, '', 0, participants)
    if (!isOf(header, binding))
      throw new Refusal('SESSION_ABORTED', 'The envelope contains another digest')
    const other = reservations.besides(
      told ? await spending.hear(partner, told, verdicts) : spending.other(partner, verdicts),
    )
    const tell = () => ({
      ...(told ? { spending: spending.tell(partner, verdicts) } : {}),
      ...policies.tell(judge.policyHashOf(workspace)),
    })
    const existing = judge.assertAllAllowed(verdicts, other)
    const recorded = existing.flatMap((step) => (step?.signed ? [step.signed.height] : []))
    bans.assertNot(partner)
    if (recorded.length === verdicts.length) {
      slot.release()
      return {
        recorded: recorded.flatMap(
          (height) => store.record.readAs(height, 'signed').body.signatures,
        ),
        ...tell(),
      }
    }
    platformOrders.assertInForce(verdicts, authorisation)
    const { mine, agreed, ids } = this.#agree(verdicts, {
      partner,
      fresh: theirs,
      epoch,
      items,
    })
    if (authorisation) platformOrders.use(authorisation)
    const free = reservations.take(verdicts)
    const session = hex(ids[0]!)
    const agreement = { verdicts, items, ids, participants, epoch: agreed, partner, binding }
    const open = this.#register(session, { ...agreement, slot, other, authorisation, free })
    try {
      this.#begin(open)
      const first = await this.#toldFirst(open)
      return withRounds({ fresh: mine, epoch: agreed, ...tell() }, first)
    } catch (error) {
      throw this.#ended(session, error)
    }
  }

  /**
   * Returns the IDs and the epoch of a session.
   * @throws Refusal
   */
  #agree(
    verdicts: readonly GovernedVerdict[],
    {
      partner,
      fresh: theirs,
      epoch,
      items,
    }: Pick<Fresh, 'fresh' | 'epoch'> & { partner: number; items: readonly SigningItem[] },
  ): { mine: string; agreed: number; ids: Buffer[] } {
    const { config, store, keyring, environment } = this.#parts
    const keyId = verdicts[0]!.key.key_id
    const mine = hex(environment.random(32))
    const agreed = this.#epoch(keyId, epoch)
    const ids = sessionIds(
      {
        key: keyId,
        epoch: agreed,
        participants: participantsOf(config.node, partner),
        fresh: [theirs, mine],
        unsigned: unsignedOf(verdicts),
      },
      items.length,
    )
    if (ids.some((id) => store.state.sessions.has(hex(id))))
      throw new Refusal('SESSION_ABORTED', 'A session id was used before')
    keyring.material(keyId, agreed)
    return { mine, agreed, ids }
  }

  /**
   * Returns the transactions with the policy in force, which must be the coordinator's too.
   * @throws Refusal `POLICY_BEHIND`
   */
  async #governed(
    partner: number,
    judged: readonly Verdict[],
    { told, policy }: { told: Told | undefined; policy: PolicyTold | undefined },
  ): Promise<readonly GovernedVerdict[]> {
    const { judge, policies } = this.#parts
    if (policy) await policies.hear(partner, policy.position)
    const isGoverned = judge.isGoverned(judged)
    if (isGoverned) {
      await policies.prepare()
      await judge.prepareOwn(judged[0]!)
    }
    if (isGoverned && !told)
      throw new Refusal('BAD_ORDER', 'An order under a policy must contain the spending')
    const { workspace } = judged[0]!.order
    policies.assertSame(workspace, partner, policy?.hash ?? null, judge.policyHashOf(workspace))
    return judge.govern(judged)
  }

  /** Registers an agreed session. It is closed after a timeout, or when the partner is banned. */
  #register(session: string, agreed: AgreedSession): Open {
    const { config, bans } = this.#parts
    const open: Open = {
      ...agreed,
      steps: [],
      batch: -1,
      run: null,
      round: 0,
      first: Promise.resolve([]),
      isBusy: false,
      signatures: [],
      timer: setTimeout(() => {
        this.#close(session)
      }, config.timeouts_ms.sign),
      release: bans.endsWith(agreed.partner, () => {
        this.#close(session)
      }),
    }
    this.#open.set(session, open)
    return open
  }

  /**
   * Returns the epoch that both nodes can sign with: the coordinator's if this node has it,
   * otherwise this node's, to which the other has switched.
   */
  #epoch(keyId: string, theirs: number): number {
    const { keyring } = this.#parts
    return keyring.isUsable(keyId, theirs) ? theirs : keyring.epochOf(keyId)
  }

  #begin(open: Open): void {
    const { engine, vault, keyring, bans } = this.#parts
    open.batch++
    open.round = 0
    const [from, to] = [open.batch * BATCH_ITEMS_MAX, (open.batch + 1) * BATCH_ITEMS_MAX]
    open.run = new Batch({
      engine,
      vault,
      bans,
      key: keyring.material(open.verdicts[0]!.key.key_id, open.epoch),
      items: open.items.slice(from, to),
      sessionIds: open.ids.slice(from, to),
      participants: open.participants,
      partner: open.partner,
      bind: () => {
        if (open.batch === 0) open.steps = bindSteps(this.#parts, open.verdicts, open)
      },
    })
    open.first = open.run.step(null).then((messages) => [messages])
    open.first.catch(() => {})
  }

  async #toldFirst(open: Open): Promise<RoundMessages[]> {
    const { first } = open
    open.first = Promise.resolve([])
    return [...(await first)]
  }

  /** Processes the partner's messages, and returns the messages that this side can compute then. */
  async #round(partner: number, body: unknown, header: Header, bytes: Buffer): Promise<unknown> {
    const { session } = header
    this.#parts.bans.assertNot(partner)
    const open = this.#open.get(session)
    if (!open || open.partner !== partner)
      throw new Refusal('SESSION_ABORTED', 'This session does not exist')
    try {
      const { batch, messages } = roundSchema.parse(body)
      if (header.round !== open.round + 1 || !isOf(header, open.binding)) {
        throw new Refusal('SESSION_ABORTED', 'The message belongs to another round or digest')
      }
      if (batch !== open.batch)
        throw new Refusal('SESSION_ABORTED', 'The message belongs to another batch')
      if (open.isBusy) throw new Refusal('SESSION_ABORTED', 'The previous rounds have not ended')
      open.isBusy = true
      open.round++
      this.#parts.judge.assertNotStopped(open.verdicts)
      const run = open.run!
      const mine = await this.#toldFirst(open)
      for (const received of roundsOf(messages, bytes)) mine.push(await run.step(received))
      run.beforeSending()
      open.isBusy = false
      // Started after the response is sent and before the next message is processed, so that the
      // partner does not wait for this side's own verification.
      if (run.results)
        setImmediate(() => {
          this.#finished(session, open)
        })
      return withRounds({ batch }, mine)
    } catch (error) {
      throw this.#ended(session, error)
    }
  }

  #finished(session: string, open: Open): void {
    if (!this.#open.has(session)) return
    try {
      open.signatures.push(...open.run!.results!)
      if (open.signatures.length < open.items.length) {
        this.#begin(open)
        return
      }
      const { registry, store } = this.#parts
      const parts = split(open.verdicts, open.signatures)
      const signed = open.verdicts.map((verdict, at) => finish(registry, verdict, parts[at]!))
      signed.forEach(({ hash, raw }, at) => {
        const step = open.steps[at]!
        if (!step.signed)
          store.appendSoon('signed', {
            step_height: step.height,
            signatures: toWire(parts[at]!),
            hash,
            raw,
          })
      })
      this.#close(session)
    } catch (error) {
      this.#failed(session, error)
    }
  }

  /** Returns the error that the partner receives for a session that ends here. */
  #ended(session: string, error: unknown): unknown {
    this.#failed(session, error)
    return error instanceof ThresholdError
      ? new Refusal('SESSION_ABORTED', `The session ended: ${error.code}`)
      : error
  }

  #failed(session: string, error: unknown): void {
    this.#parts.bans.consider(error)
    if (this.#open.has(session))
      this.#parts.log('warn', 'a session with a peer was aborted', { reason: reason(error) })
    this.#close(session)
  }

  #close(session: string): void {
    const open = this.#open.get(session)
    if (!open) return
    clearTimeout(open.timer)
    this.#open.delete(session)
    open.release()
    open.run?.abort()
    open.slot.release()
    open.free()
  }
}
