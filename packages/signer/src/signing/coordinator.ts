import type { Registry, SignatureBytes, SignedTransaction, SigningItem } from '@custody/chains'
import type { OrderAuthorisation } from '@custody/request-auth/orders'
import { ThresholdError, type KeyMaterial, type Vault } from '@custody/threshold'
import { z } from 'zod'
import { hex } from '../canonical.ts'
import type { Config } from '../config.ts'
import type { Environment } from '../environment.ts'
import { Refusal, shapeOfAnswer } from '../errors.ts'
import type { PolicyExchange } from '../governance/exchange.ts'
import { policyToldSchema } from '../governance/positions.ts'
import type { Keyring } from '../keys/keyring.ts'
import { reason, type Log } from '../log.ts'
import type { OtherCharges } from '../policy/budget.ts'
import type { Judge } from '../policy/judge.ts'
import type { GovernedVerdict, Order, Verdict } from '../policy/order.ts'
import type { Store } from '../store/index.ts'
import type { StepEntry } from '../store/state.ts'
import type { Peers } from '../transport/peers.ts'
import type { Binding } from '../envelope.ts'
import type { Bans } from '../sessions/bans.ts'
import { Batch, BATCH_ITEMS_MAX, isSilent, type RoundMessages } from '../sessions/batch.ts'
import type { Engine } from '../sessions/engine.ts'
import { lengthsSchema, roundsOf, withRounds } from './rounds.ts'
import {
  bindingOf,
  finish,
  fromWire,
  itemsOf,
  participantsOf,
  sessionIds,
  split,
  toWire,
  unsignedOf,
  type WireSignature,
} from './items.ts'
import type { CatchUp } from './catch-up.ts'
import type { PlatformOrders } from './platform-orders.ts'
import type { Reservations } from './reservations.ts'
import { toldSchema, type SharedSpending } from './shared-spending.ts'
import { inputsOf, sizeOf, type Slots } from './slots.ts'

const wireSchema = z.array(
  z.strictObject({
    signature: z.string().regex(/^[0-9a-f]{128}$/),
    recovery_id: z.int().min(0).max(3).nullable(),
  }),
)
/** Absent if the order counts against no limit, and from earlier versions. */
const spending = toldSchema.optional()
/** Absent if the sender has no policy on record. */
const policy = policyToldSchema.optional()
const openedSchema = z.union([
  z.strictObject({ recorded: wireSchema, spending, policy }),
  /** `messages`: the partner's first round. */
  z.strictObject({
    fresh: z.string().regex(/^[0-9a-f]{64}$/),
    epoch: z.int().min(0),
    messages: lengthsSchema,
    spending,
    policy,
  }),
])
type Begun = Extract<z.infer<typeof openedSchema>, { fresh: string }>
/** The data that both nodes have agreed on when the partner has opened a session. */
interface AgreedSession {
  items: SigningItem[]
  participants: [number, number]
  /** This node's random bytes, in hex. */
  fresh: string
  opened: Begun
  /** The messages of the partner's first round. */
  bytes: Buffer
  partner: number
  binding: Binding
  /** Charges that count besides those on this node's record. */
  other: OtherCharges
  authorisation: OrderAuthorisation | null
}
/** What one session is to sign. */
interface Ordered {
  verdicts: readonly GovernedVerdict[]
  partner: number
  authorisation: OrderAuthorisation | null
  /** Whether the nodes tell each other what counts against the orders' limits. */
  isTold: boolean
}
export const roundSchema = z.strictObject({ batch: z.int().min(0), messages: lengthsSchema })

export interface SigningParts {
  config: Config
  environment: Environment
  store: Store
  registry: Registry
  engine: Engine
  vault: Vault
  judge: Judge
  keyring: Keyring
  peers: Peers
  bans: Bans
  catchUp: CatchUp
  slots: Slots
  spending: SharedSpending
  reservations: Reservations
  platformOrders: PlatformOrders
  policies: PolicyExchange
  log: Log
}

export interface SignAnswer {
  signatures: WireSignature[]
  signed: SignedTransaction
}

/**
 * The node that the platform has called: it evaluates the orders, lets the partner evaluate them, runs
 * the rounds, records the steps before a signature can exist, and verifies the result.
 */
export class Coordinator {
  readonly #parts: SigningParts

  constructor(parts: SigningParts) {
    this.#parts = parts
  }

  async sign(
    order: Order,
    partner: number,
    authorisation: OrderAuthorisation | null,
  ): Promise<SignAnswer> {
    return (await this.signAll([order], partner, authorisation))[0]!
  }

  /** Signs several payments of one account in one session: all of them or none. */
  async signAll(
    orders: readonly Order[],
    partner: number,
    authorisation: OrderAuthorisation | null,
  ): Promise<SignAnswer[]> {
    const { judge, config, bans, slots, platformOrders, reservations } = this.#parts
    if (partner === config.node || !config.peerList.some((peer) => peer.node === partner)) {
      throw new Refusal('BAD_ORDER', 'partner must be another node')
    }
    bans.assertNot(partner)
    platformOrders.assertAuthorised(orders, { authorisation, leader: config.node, partner })
    const slot = slots.reserve(partner)
    try {
      slot.widen(inputsOf(orders), sizeOf(orders))
      const judged = await judge.judgeAll(orders)
      await this.#parts.catchUp.prepare(judged[0]!, reservations)
      return await this.#signJudged(judged, partner, authorisation)
    } finally {
      slot.release()
    }
  }

  async #signJudged(
    judged: readonly Verdict[],
    partner: number,
    authorisation: OrderAuthorisation | null,
  ): Promise<SignAnswer[]> {
    const { judge, spending, policies, reservations, platformOrders } = this.#parts
    const isGoverned = judge.isGoverned(judged)
    if (isGoverned) {
      await policies.prepare()
      await judge.prepareOwn(judged[0]!)
    }
    // Before the last check, because nothing may happen between that check and the reservation.
    const isTold = (isCharged(judged) || isGoverned) && (await spending.prepare(partner))
    if (isGoverned && !isTold) throw earlierVersion(partner)
    const other = reservations.besides(spending.other(partner, judged))
    const verdicts = judge.govern(judged, other)
    const existing = judge.assertAllAllowed(verdicts, other)
    if (existing.every((step) => step?.signed))
      return verdicts.map((verdict, at) => this.#recorded(verdict, existing[at]!))
    platformOrders.assertInForce(verdicts, authorisation)
    const end = reservations.take(verdicts)
    try {
      return await this.#run({ verdicts, partner, authorisation, isTold })
    } finally {
      end()
    }
  }

  #recorded(verdict: Verdict, step: StepEntry): SignAnswer {
    const { body } = this.#parts.store.record.readAs(step.signed!.height, 'signed')
    return this.#answer(verdict, fromWire(body.signatures))
  }

  #answer(verdict: Verdict, signatures: SignatureBytes[]): SignAnswer {
    return {
      signatures: toWire(signatures),
      signed: finish(this.#parts.registry, verdict, signatures),
    }
  }

  async #run({ verdicts, partner, authorisation, isTold }: Ordered): Promise<SignAnswer[]> {
    const { config, environment, keyring, peers, registry, spending, policies, judge } = this.#parts
    const items = itemsOf(registry, verdicts)
    const [
      {
        key: { key_id: keyId },
        order,
      },
    ] = verdicts as readonly [GovernedVerdict]
    const participants = participantsOf(config.node, partner)
    const fresh = hex(environment.random(32))
    const timeout = config.timeouts_ms.round
    const epoch = keyring.epochOf(keyId)
    const request =
      verdicts.length === 1 ? { order } : { orders: verdicts.map((verdict) => verdict.order) }
    const binding = bindingOf(verdicts, items, '', 0, participants)
    const told = {
      ...(isTold ? { spending: spending.tell(partner, verdicts) } : {}),
      ...policies.tell(judge.policyHashOf(order.workspace)),
      ...(authorisation ? { authorisation } : {}),
    }
    const answer = await peers.exchange(
      partner,
      '/peer/sign/open',
      { ...request, fresh, epoch, ...told },
      { timeout: timeout + 1000, binding },
    )
    const opened = shapeOfAnswer(openedSchema, answer.body, partner)
    if (opened.policy) await policies.hear(partner, opened.policy.position)
    const other = this.#parts.reservations.besides(
      opened.spending
        ? await spending.hear(partner, opened.spending, verdicts)
        : spending.other(partner, verdicts),
    )
    if (!('fresh' in opened)) {
      // The partner has signed an identical transaction before; the result is verified by the
      // signatures themselves.
      const steps = this.#bind(verdicts, { partner, other, authorisation, ids: [] })
      return this.#keep(verdicts, steps, fromWire(opened.recorded))
    }
    const { bytes } = answer
    const agreement = { items, participants, fresh, opened, bytes, partner, binding, other }
    return this.#together(verdicts, { ...agreement, authorisation })
  }

  /**
   * Signs the transactions that both nodes have permitted.
   * @throws Refusal
   */
  async #together(
    verdicts: readonly GovernedVerdict[],
    agreed: AgreedSession,
  ): Promise<SignAnswer[]> {
    const { config, environment, engine, vault, bans, judge, log } = this.#parts
    const { items, participants, opened, bytes, partner } = agreed
    const { ids, key } = this.#agree(verdicts, agreed)
    const session = hex(ids[0]!)
    const signatures: SignatureBytes[] = []
    let steps: readonly StepEntry[] = []
    const deadline = environment.now() + config.timeouts_ms.sign
    for (let batch = 0; batch * BATCH_ITEMS_MAX < items.length; batch++) {
      const [from, to] = [batch * BATCH_ITEMS_MAX, (batch + 1) * BATCH_ITEMS_MAX]
      const run = new Batch({
        engine,
        vault,
        bans,
        key,
        items: items.slice(from, to),
        sessionIds: ids.slice(from, to),
        participants,
        partner,
        bind: () => {
          if (batch === 0) steps = this.#bind(verdicts, { ...agreed, ids })
        },
      })
      const say = this.#roundSender(agreed, session, batch)
      try {
        const last = await this.#converse(
          run,
          batch === 0 ? roundsOf(opened.messages, bytes) : [],
          (rounds) => {
            assertInTime(environment.now(), deadline, partner)
            judge.assertNotStopped(verdicts)
            return say(rounds)
          },
        )
        signatures.push(...run.results!)
        if (last.length === 0) continue
        // Awaited, so that a subsequent void names the signature at both nodes. If it fails, the
        // signature is valid anyway, because it exists here.
        const pending = say(last)
        if (to < items.length) await pending
        else
          await pending.catch((error: unknown) => {
            log('warn', 'the partner did not receive the last message of the session', {
              partner,
              reason: reason(error),
            })
          })
      } catch (error) {
        run.abort()
        bans.consider(error)
        throw sessionError(error, partner)
      }
    }
    return this.#keep(verdicts, steps, signatures)
  }

  /**
   * Returns the IDs of an agreed session's engine sessions and the share that they use.
   * @throws Refusal if a session ID was used before, or the epoch is not in use here
   */
  #agree(
    verdicts: readonly GovernedVerdict[],
    { items, participants, fresh, opened, partner }: AgreedSession,
  ): { ids: Buffer[]; key: KeyMaterial } {
    const { keyring, store } = this.#parts
    const keyId = verdicts[0]!.key.key_id
    const ids = sessionIds(
      {
        key: keyId,
        epoch: opened.epoch,
        participants,
        fresh: [fresh, opened.fresh],
        unsigned: unsignedOf(verdicts),
      },
      items.length,
    )
    if (ids.some((id) => store.state.sessions.has(hex(id))))
      throw new Refusal('SESSION_ABORTED', 'A session id was used before')
    if (!keyring.isUsable(keyId, opened.epoch)) {
      throw new Refusal(
        'SESSION_ABORTED',
        `Node ${partner} uses the epoch ${opened.epoch}, which is not in use here`,
        { node: partner },
      )
    }
    return { ids, key: keyring.material(keyId, opened.epoch) }
  }

  /** See {@link bindSteps}. */
  #bind(
    verdicts: readonly GovernedVerdict[],
    session: Pick<AgreedSession, 'partner' | 'other' | 'authorisation'> & {
      ids: readonly Buffer[]
    },
  ): StepEntry[] {
    return bindSteps(this.#parts, verdicts, session)
  }

  /** Returns the function that sends rounds of a batch to the partner and returns its rounds. */
  #roundSender(
    { partner, binding }: AgreedSession,
    session: string,
    batch: number,
  ): (rounds: readonly RoundMessages[]) => Promise<RoundMessages[]> {
    const { config, peers } = this.#parts
    let round = 0
    return async (rounds) => {
      const answer = await peers.exchange(
        partner,
        '/peer/sign/round',
        withRounds({ batch }, rounds),
        {
          timeout: config.timeouts_ms.round,
          binding: { ...binding, session, round: ++round },
        },
      )
      return roundsOf(shapeOfAnswer(roundSchema, answer.body, partner).messages, answer.bytes)
    }
  }

  /**
   * Runs a batch to its end, in as few messages as the engine permits: each message contains all
   * rounds that this side can compute by then.
   * @param received the messages that the partner has sent already
   * @returns the messages that the partner has not received yet
   */
  async #converse(
    run: Batch,
    received: RoundMessages[],
    say: (rounds: readonly RoundMessages[]) => Promise<RoundMessages[]>,
  ): Promise<RoundMessages[]> {
    let mine = [await run.step(null)]
    for (;;) {
      for (const messages of received) mine.push(await run.step(messages))
      if (run.results) return mine.filter((messages) => !isSilent(messages))
      run.beforeSending()
      received = await say(mine)
      if (received.length === 0)
        throw new Refusal('SESSION_ABORTED', 'The partner sends no more messages')
      mine = []
    }
  }

  #keep(
    verdicts: readonly Verdict[],
    steps: readonly StepEntry[],
    signatures: readonly SignatureBytes[],
  ): SignAnswer[] {
    const parts = split(verdicts, signatures)
    const answers = verdicts.map((verdict, at) => this.#answer(verdict, parts[at]!))
    answers.forEach((answer, at) => {
      const step = steps[at]!
      if (step.signed) return
      this.#parts.store.appendSoon('signed', {
        step_height: step.height,
        signatures: answer.signatures,
        hash: answer.signed.hash,
        raw: answer.signed.raw,
      })
    })
    return answers
  }
}

/**
 * Records the steps of a session durably, before a signature of them can exist. Everything is checked
 * against the record again. Synchronous: nothing happens between the check and the write.
 * @param session.ids of its engine sessions; none if a signature exists already
 * @throws Refusal
 */
export function bindSteps(
  { judge, peers, platformOrders }: Pick<SigningParts, 'judge' | 'peers' | 'platformOrders'>,
  verdicts: readonly GovernedVerdict[],
  {
    partner,
    other,
    authorisation,
    ids,
  }: Pick<AgreedSession, 'partner' | 'other' | 'authorisation'> & { ids: readonly Buffer[] },
): StepEntry[] {
  platformOrders.assertInForce(verdicts, authorisation)
  const sessions = split(verdicts, ids.map(hex))
  return judge.admitAll(
    verdicts,
    sessions.map((each) => ({ sessions: each, partner, peer_head: peers.headOf(partner) })),
    other,
  )
}

const earlierVersion = (partner: number): Refusal =>
  new Refusal(
    'POLICY_BEHIND',
    `Node ${partner} runs an earlier version, which does not have policies: upgrade it first`,
    { node: partner },
  )

/** Returns whether any order counts against a limit. */
const isCharged = (verdicts: readonly Verdict[]): boolean =>
  verdicts.some(({ charges }) => charges.length > 0)

/**
 * Checks the deadline of a signature, in Unix ms.
 * @throws Refusal PEER_UNAVAILABLE
 */
function assertInTime(now: number, deadline: number, partner: number): void {
  if (now > deadline) {
    throw new Refusal('PEER_UNAVAILABLE', `The signature with partner ${partner} took too long`, {
      node: partner,
    })
  }
}

/** Returns an error of the signing engine as a refusal, and any other error unchanged. */
function sessionError(error: unknown, partner: number): unknown {
  if (!(error instanceof ThresholdError)) return error
  return new Refusal(
    'SESSION_ABORTED',
    `The session with partner ${partner} ended: ${error.code}`,
    { node: partner },
  )
}
