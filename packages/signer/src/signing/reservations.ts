import { Refusal } from '../errors.ts'
import type { OtherCharges } from '../policy/budget.ts'
import { accountOf } from '../policy/nonce.ts'
import { namesOf, type Verdict } from '../policy/order.ts'
import type { SharedSpending } from './shared-spending.ts'

/**
 * Transactions of sessions in progress that are not on record yet, of sessions that this node leads and
 * of those in which it is the partner. They count against limits, so that two sessions do not use the
 * same part of one, and a step has one transaction at a time. Nothing of it is durable.
 */
export class Reservations {
  readonly #spending: SharedSpending
  /** Steps that are being signed, with the transaction. */
  readonly #busy = new Map<string, { hash: string; count: number }>()
  /** Account → nonces that are being signed. */
  readonly #nonces = new Map<string, bigint[]>()

  constructor(spending: SharedSpending) {
    this.#spending = spending
  }

  /**
   * Reserves what a session needs, until the returned function is called.
   * @throws Refusal TOO_BUSY
   */
  take(verdicts: readonly Verdict[]): () => void {
    const steps = verdicts
      .filter(({ repeatable }) => !repeatable)
      .flatMap((verdict) => namesOf(verdict).map((name) => ({ name, hash: verdict.unsignedHash })))
    if (steps.some(({ name, hash }) => (this.#busy.get(name)?.hash ?? hash) !== hash))
      throw new Refusal('TOO_BUSY', 'Another transaction of this step is being signed')
    const end = this.#spending.begin(verdicts)
    for (const { name, hash } of steps) {
      const mine = this.#busy.get(name) ?? { hash, count: 0 }
      mine.count++
      this.#busy.set(name, mine)
    }
    const nonces = verdicts.flatMap((verdict) => {
      const account = accountOf(verdict)
      return account === null ? [] : [{ account, nonce: verdict.decoded.nonce! }]
    })
    for (const { account, nonce } of nonces)
      this.#nonces.set(account, [...(this.#nonces.get(account) ?? []), nonce])
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      end()
      for (const { name } of steps) if (--this.#busy.get(name)!.count === 0) this.#busy.delete(name)
      for (const { account, nonce } of nonces) this.#releaseNonce(account, nonce)
    }
  }

  /** Returns charges that count besides those on record, with the nonces that are being signed. */
  besides(other: OtherCharges): OtherCharges {
    return { ...other, nonce: (account) => this.nonceOf(account) }
  }

  /** Returns the highest nonce of an account that is being signed; null: none. */
  nonceOf(account: string): bigint | null {
    return (this.#nonces.get(account) ?? []).reduce<bigint | null>(
      (most, nonce) => (most === null || nonce > most ? nonce : most),
      null,
    )
  }

  #releaseNonce(account: string, nonce: bigint): void {
    const left = [...this.#nonces.get(account)!]
    left.splice(left.indexOf(nonce), 1)
    if (left.length > 0) this.#nonces.set(account, left)
    else this.#nonces.delete(account)
  }
}
