import { startSign, ThresholdError, type InMessage, type KeyMaterial, type Session, type SignResult, type Vault } from '@custody/threshold'
import type { SigningItem } from '@custody/chains'
import { Refusal } from '../errors.ts'

/** A proven cheat where one of several errors is that. */
export const gravest = (errors: readonly unknown[]): unknown =>
  errors.find((error) => error instanceof ThresholdError && error.code === 'CHEAT') ?? errors[0]

/** What one side says in one round: the messages of each item. */
export type RoundMessages = readonly (readonly Uint8Array[])[]
export const isSilent = (messages: RoundMessages): boolean => messages.every((list) => list.length === 0)

/**
 * One side's sessions of some inputs, stepped together. Messages of a round are one list per item. Whoever takes the results
 * verifies them (threshold rule 12): `finish` of what is signed for a chain, `verifyItems` of a refresh's test.
 */
export const BATCH_ITEMS_MAX = 8

export class Batch {
  readonly #sessions: Session<SignResult>[]
  readonly #partner: number
  results: SignResult[] | null = null

  constructor(o: {
    vault: Vault
    key: KeyMaterial
    items: readonly SigningItem[]
    sessionIds: readonly Uint8Array[]
    participants: [number, number]
    partner: number
  }) {
    this.#partner = o.partner
    this.#sessions = o.items.map((item, at) => startSign({
      vault: o.vault, key: o.key, sessionId: new Uint8Array(o.sessionIds[at]!), participants: o.participants, path: [...item.path],
      message: item.message, isVerifiedByCaller: true,
    }))
  }

  /** @param inbox the partner's messages of one round; null at the start */
  async step(inbox: RoundMessages | null): Promise<RoundMessages> {
    if (inbox && inbox.length !== this.#sessions.length) {
      throw new Refusal('SESSION_ABORTED', 'Another number of items', { node: this.#partner })
    }
    const settled = await Promise.allSettled(
      this.#sessions.map((session, at) => session.step(
        (inbox?.[at] ?? []).map((payload): InMessage => ({ from: this.#partner, payload }))
      ))
    )
    const errors = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []))
    // All of them are looked at: a proven cheat in one item must not hide behind garbage in another.
    if (errors.length > 0) throw gravest(errors)
    const steps = settled.map((each) => (each as PromiseFulfilledResult<Awaited<ReturnType<Session<SignResult>['step']>>>).value)
    const finished = steps.filter((step) => step.kind === 'done')
    if (finished.length > 0) {
      if (finished.length !== steps.length) throw new Refusal('SESSION_ABORTED', 'The items are at different rounds')
      this.results = finished.map((step) => step.result)
    }
    return steps.map((step) => step.messages
      .filter((message) => message.to === 0 || message.to === this.#partner)
      .map((message) => message.payload))
  }

  abort(): void { for (const session of this.#sessions) session.abort() }
}
