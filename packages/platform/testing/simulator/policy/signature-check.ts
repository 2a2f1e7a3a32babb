import type { GovernedSignature } from './governed-nodes.ts'
import type { NaivePolicy, SignedPayment } from './naive-policy.ts'
import type { PolicyRecord } from './policy-record.ts'

/** Purpose of an order, as far as the oracle reads it. */
export interface Purpose {
  kind: string
  request?: { token: string; uri: string; body: string }
  for?: Purpose
}

/** A transfer that a caller requested. */
type Wanted = Pick<SignedPayment, 'id' | 'authorization' | 'subAccount' | 'asset' | 'units'>

/** Checks each signature of the nodes by what people signed. */
export class SignatureCheck {
  readonly problems: string[] = []
  readonly #record: PolicyRecord
  readonly #naive: NaivePolicy
  readonly #wantedOf: (purpose: Purpose) => Wanted | undefined
  /** Highest number of a document under which each node has signed. */
  readonly #numbers = new Map<number, number>()
  readonly #signed = new Set<string>()
  /** Payments by the small way, in the order of their signatures. */
  readonly #small: SignedPayment[] = []

  /** @param wantedOf returns the transfer of a payment's purpose */
  constructor(
    record: PolicyRecord,
    naive: NaivePolicy,
    wantedOf: (purpose: Purpose) => Wanted | undefined,
  ) {
    this.#record = record
    this.#naive = naive
    this.#wantedOf = wantedOf
  }

  /** Checks the next signature. */
  check(signature: GovernedSignature): void {
    const { order, pair, atMs, hashes } = signature
    this.#checkDocument(signature)
    this.#checkStops(signature)
    const { bytes } = order.unsigned
    const purpose = order.purpose as unknown as Purpose
    const wanted = purpose.kind === 'pay' ? this.#wantedOf(purpose) : undefined
    // The same transaction may be signed again, because it is public already.
    if (wanted && hashes[0] !== null && !this.#signed.has(bytes))
      this.#checkPayment({ ...wanted, atMs, pair, hash: hashes[0] })
    this.#signed.add(bytes)
  }

  #checkDocument({ hashes: [one, two], pair, atMs }: GovernedSignature): void {
    if (one === null || one !== two)
      return void this.problems.push(`the nodes ${pair.join()} signed under ${one} and ${two}`)
    const why = this.#naive.notInForce(one, pair, atMs)
    if (why !== null)
      return void this.problems.push(`a signature under the document ${one}: ${why}`)
    const { number } = this.#record.documentOf(one).document
    for (const node of pair) {
      if (number < (this.#numbers.get(node) ?? 0))
        this.problems.push(`node ${node} signed under the earlier document ${number}`)
      this.#numbers.set(node, number)
    }
  }

  #checkStops({ order, pair, atMs }: GovernedSignature): void {
    const purpose = order.purpose as unknown as Purpose
    const served = purpose.kind === 'fuel' || purpose.kind === 'lend' ? purpose.for : purpose
    if (purpose.kind === 'cancel' || served?.kind === 'cancel') return
    const wanted = served?.kind === 'pay' ? this.#wantedOf(served) : undefined
    const stop = this.#naive.stopFor(pair, wanted?.subAccount ?? null, atMs)
    if (stop !== undefined)
      this.problems.push(`a ${purpose.kind} was signed by ${pair.join()} under the stop ${stop}`)
  }

  #checkPayment(payment: SignedPayment): void {
    const what = `${payment.id} (${payment.units} ${payment.asset.code}) was signed`
    const way = this.#naive.wayOf(payment)
    if (typeof way === 'object') return void this.problems.push(`${what}: ${way.why}`)
    const rejected = this.#record.decisions.find(
      (each) =>
        each.id === payment.id &&
        each.decision === 'reject' &&
        each.result === 'stored' &&
        (each.answeredMs ?? Infinity) < payment.atMs,
    )
    if (rejected) this.problems.push(`${what} after ${rejected.by} had rejected it`)
    if (way !== 'small') return
    const why = this.#naive.overWindow(this.#small, payment)
    if (why !== null) this.problems.push(`${what}: ${why}`)
    this.#small.push(payment)
  }
}
