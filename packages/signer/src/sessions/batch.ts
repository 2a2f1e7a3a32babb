import {
  ThresholdError,
  type Curve,
  type InMessage,
  type KeyMaterial,
  type Session,
  type SignResult,
  type Vault,
} from '@custody/threshold'
import type { SigningItem } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { Bans } from './bans.ts'
import type { Engine } from './engine.ts'

/** Returns the error that proves a cheat, if there is one among several errors. */
export const gravest = (errors: readonly unknown[]): unknown =>
  errors.find((error) => error instanceof ThresholdError && error.code === 'CHEAT') ?? errors[0]

/** Messages of one side in one round: the messages of each item. */
export type RoundMessages = readonly (readonly Uint8Array[])[]
export const isSilent = (messages: RoundMessages): boolean =>
  messages.every((list) => list.length === 0)

/**
 * One side's sessions for several inputs, which run in lockstep. The messages of a round are one
 * list per item. The user of the results verifies them (threshold rule 12): `finish` for
 * transactions, `verifyItems` for a test signature.
 *
 * A ban of the partner ends the batch immediately, and nothing is sent from then on.
 */
export const BATCH_ITEMS_MAX = 8

/** Rounds of messages of a signature. The step after the last one ends it. */
export const SIGN_ROUNDS: Record<Curve, number> = { secp256k1: 3, ed25519: 2 }

export class Batch {
  readonly #sessions: Session<SignResult>[]
  readonly #partner: number
  readonly #bans: Bans
  readonly #release: () => void
  readonly #isChecked: boolean
  readonly #rounds: number
  readonly #bind: () => void
  #steps = 0
  #isBound = false
  results: SignResult[] | null = null

  /**
   * @param o.bind called once: before this side finishes, or before it sends its messages of the last
   *   round, whichever is first, because a signature can exist from then on. If it throws, the session
   *   ends and the messages are dropped
   * @throws Refusal BANNED
   */
  constructor(o: {
    engine: Engine
    vault: Vault
    bans: Bans
    key: KeyMaterial
    items: readonly SigningItem[]
    sessionIds: readonly Uint8Array[]
    participants: [number, number]
    partner: number
    bind?: () => void
  }) {
    this.#rounds = SIGN_ROUNDS[o.key.curve]
    this.#bind = o.bind ?? (() => {})
    this.#partner = o.partner
    this.#bans = o.bans
    this.#isChecked = o.key.curve === 'secp256k1'
    o.bans.assertNot(o.partner)
    this.#sessions = o.items.map((item, at) =>
      o.engine.startSign({
        vault: o.vault,
        key: o.key,
        sessionId: new Uint8Array(o.sessionIds[at]!),
        participants: o.participants,
        path: [...item.path],
        message: item.message,
        isVerifiedByCaller: true,
      }),
    )
    this.#release = o.bans.endsWith(o.partner, () => {
      this.abort()
    })
  }

  /**
   * Executes one step.
   * @param inbox the partner's messages of one round; null at the start
   * @throws Refusal BANNED, ThresholdError
   */
  async step(inbox: RoundMessages | null): Promise<RoundMessages> {
    if (inbox && inbox.length !== this.#sessions.length) {
      throw new Refusal('SESSION_ABORTED', 'The number of items differs', { node: this.#partner })
    }
    this.beforeSending()
    const said = await this.#checked(inbox)
    this.#steps++
    if (this.results && !this.#isBound) throw new Error(`a signature after ${this.#steps} steps`)
    return said
  }

  /**
   * Must be called before messages of this side are sent.
   * @throws what `bind` throws
   */
  beforeSending(): void {
    if (this.#isBound || this.#steps < this.#rounds) return
    this.#bind()
    this.#isBound = true
  }

  async #checked(inbox: RoundMessages | null): Promise<RoundMessages> {
    // Only messages of a partner of a secp256k1 key are checked against a long-term secret.
    if (inbox && this.#isChecked) return this.#bans.check(this.#partner, () => this.#step(inbox))
    this.#bans.assertNot(this.#partner)
    const said = await this.#step(inbox)
    this.#bans.assertNot(this.#partner)
    return said
  }

  async #step(inbox: RoundMessages | null): Promise<RoundMessages> {
    const settled = await Promise.allSettled(
      this.#sessions.map(async (session, at) => {
        try {
          return await session.step(
            (inbox?.[at] ?? []).map((payload): InMessage => ({ from: this.#partner, payload })),
          )
        } catch (error) {
          // Called before the other items have ended, because a cheater's results must not be used.
          this.#bans.consider(error)
          throw error
        }
      }),
    )
    const errors = settled.flatMap((each) =>
      each.status === 'rejected' ? [each.reason as unknown] : [],
    )
    // All errors are evaluated, so that a proven cheat in one item cannot be hidden by invalid data
    // in another.
    if (errors.length > 0) throw gravest(errors)
    const steps = settled.map(
      (each) =>
        (each as PromiseFulfilledResult<Awaited<ReturnType<Session<SignResult>['step']>>>).value,
    )
    const finished = steps.filter((step) => step.kind === 'done')
    if (finished.length > 0) {
      if (finished.length !== steps.length)
        throw new Refusal('SESSION_ABORTED', 'The items are in different rounds')
      this.results = finished.map((step) => step.result)
      this.#release()
    }
    return steps.map((step) =>
      step.messages
        .filter((message) => message.to === 0 || message.to === this.#partner)
        .map((message) => message.payload),
    )
  }

  abort(): void {
    this.#release()
    for (const session of this.#sessions) session.abort()
  }
}
