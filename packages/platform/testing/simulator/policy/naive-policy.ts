import { readSigned, statementHash, type Statement } from '@custody/policy'
import { isKept, type PolicyRecord, type Presented } from './policy-record.ts'
import { HOURS, LIMITED, unitsOf, type Asset } from './terms.ts'
import { REQUESTER } from './people.ts'

/** A proposal that is seen that much too late still comes into force in time. */
const SIGHT_S = 300

/** A signed payment, as the oracle judges it. */
export interface SignedPayment {
  atMs: number
  pair: readonly number[]
  hash: string
  /** ID of the transfer. */
  id: string
  /** Name of the authorization: requests that can be paid once only have the same. */
  authorization: string
  subAccount: string
  asset: Asset
  units: bigint
}

type Statements<Kind extends Statement['kind']> = {
  presented: Presented
  statement: Extract<Statement, { kind: Kind }>
  hash: string
}

/**
 * Whether a node of a pair had something at a time. A node that was restored has what its peers have,
 * because it reads them before it signs.
 */
const isKnownTo = (pair: readonly number[], presented: Presented, nowMs: number): boolean =>
  isKept(presented, nowMs) && presented.nodes.some((node) => pair.includes(node))

/**
 * What the policy of the workspace allowed at a time, by the documents and statements that people
 * signed. It has no code in common with the evaluation in the product.
 */
export class NaivePolicy {
  readonly #record: PolicyRecord
  readonly #clockS: number

  /**
   * @param clockS seconds by which a node's clock may be wrong, with a reserve. What depends on the
   *   time is judged with this tolerance; amounts and numbers are exact
   */
  constructor(record: PolicyRecord, clockS: number) {
    this.#record = record
    this.#clockS = clockS
  }

  #statements<Kind extends Statement['kind']>(kind: Kind): Statements<Kind>[] {
    return this.#record.presented.flatMap((presented) => {
      if (presented.item.kind !== 'statement') return []
      const { statement } = readSigned(presented.item.signed)
      if (statement.kind !== kind) return []
      const hash = statementHash(statement)
      return [{ presented, statement: statement as Extract<Statement, { kind: Kind }>, hash }]
    })
  }

  /** Why a document could not be in force at the nodes of a pair; null: it could. */
  notInForce(hash: string, pair: readonly number[], atMs: number): string | null {
    const known = this.#record.documents.get(hash)
    if (!known) return 'no person wrote it'
    if (known.document.number === 1) return null
    const previous = this.#record.documents.get(known.document.previous)
    if (!previous) return 'its previous document is unknown'
    const proposed = this.#record.presented.find(
      (each) =>
        each.item.kind === 'change' && each.item.document === known.text && isKept(each, atMs),
    )
    if (!proposed) return 'no node accepted it'
    const early = atMs / 1000 - proposed.atMs / 1000 - previous.terms.delayS
    if (early < -SIGHT_S - 2 * this.#clockS) return `it is in force ${-early} s before its delay`
    const isVetoed = this.#statements('veto').some(
      ({ statement, presented }) =>
        statement.next.hash === hash && isKnownTo(pair, presented, atMs),
    )
    return isVetoed ? 'a node of the pair had accepted a veto' : null
  }

  /** The stop that a node of a pair had accepted, and that no resume had ended; undefined: none. */
  stopFor(pair: readonly number[], subAccount: string | null, atMs: number): string | undefined {
    const resumed = this.#record.presented.flatMap((each) => {
      const { item } = each
      if (item.kind !== 'resumed' || !isKept(each, atMs)) return []
      const { statement } = readSigned(item.stop)
      return statement.kind === 'stop' ? [statement] : []
    })
    return this.#statements('stop').find(({ statement, presented }) => {
      const { sub_account: scope, at } = statement
      if (!isKnownTo(pair, presented, atMs)) return false
      if (scope !== null && scope !== subAccount) return false
      return !resumed.some((each) => each.sub_account === scope && each.at >= at)
    })?.hash
  }

  /** Whether a key counted for nothing at a node of the pair. */
  isBlocked(person: string, key: string, pair: readonly number[], atMs: number): boolean {
    return [...this.#statements('suspend'), ...this.#statements('revoke')].some(
      ({ statement: { target, kind }, presented }) =>
        target.person === person &&
        target.key === key &&
        // A suspension ends after seven days.
        (kind === 'revoke' || atMs - presented.atMs < 6.9 * 86_400_000) &&
        isKnownTo(pair, presented, atMs),
    )
  }

  /** People whose approvals of a transfer counted under a document. */
  approversOf({ id, hash, pair, atMs }: Pick<SignedPayment, 'id' | 'hash' | 'pair' | 'atMs'>) {
    const { approvalS } = this.#record.documentOf(hash).terms
    const now = atMs / 1000
    const counted = this.#record.decisions.filter(
      (each) =>
        each.id === id &&
        each.hash === hash &&
        each.decision === 'approve' &&
        !each.isForged &&
        each.by !== REQUESTER &&
        each.sentMs <= atMs &&
        each.expires > now - this.#clockS &&
        each.at + approvalS > now - this.#clockS &&
        !this.isBlocked(each.by, each.key, pair, atMs),
    )
    return new Set(counted.map(({ by }) => by))
  }

  /**
   * By which way a document allows a payment at a time.
   * @returns the way, or why there is none
   */
  wayOf(payment: SignedPayment): 'free' | 'small' | 'large' | { why: string } {
    const { terms } = this.#record.documentOf(payment.hash)
    const { asset, units } = payment
    if (payment.subAccount !== LIMITED) return 'free'
    if (units >= unitsOf(asset, terms.denyMin)) return { why: 'the rule "most" denies it' }
    const isLarge = terms.largeMin === null || units >= unitsOf(asset, terms.largeMin)
    const approvers = this.approversOf(payment)
    if (isLarge && approvers.size >= terms.k) return 'large'
    if (units <= unitsOf(asset, terms.smallMax)) return 'small'
    return { why: `it has the approvals of ${[...approvers].join(' and ') || 'no person'}` }
  }

  /** Why payments by the small way exceed its window at the time of the last one; null: they fit. */
  overWindow(payments: readonly SignedPayment[], last: SignedPayment): string | null {
    const { count, sum } = this.#record.documentOf(last.hash).terms
    const since = last.atMs - (HOURS * 3600 - 2 * this.#clockS) * 1000
    const within = new Map(
      payments
        .filter(({ atMs }) => atMs > since && atMs <= last.atMs)
        .map((each) => [each.authorization, each]),
    ).set(last.authorization, last)
    if (count !== null && within.size > count)
      return `${within.size} payments in the window of ${count}`
    if (sum === null) return null
    let total = 0n
    for (const { asset, units } of within.values())
      if (asset.code === last.asset.code) total += units
    const max = unitsOf(last.asset, sum)
    return total > max ? `${total} ${last.asset.code} in the window of ${max}` : null
  }
}
