import type { Callers, PlannedTransfer } from '../callers.ts'
import type { SimulatedEnvironment } from '../environment.ts'
import { NaivePolicy } from './naive-policy.ts'
import { REQUESTER } from './people.ts'
import type { Decision } from './policy-record.ts'
import type { SimulatedPolicy } from './simulated-policy.ts'
import { SignatureCheck, type Purpose } from './signature-check.ts'
import { LIMITED, unitsOf, type Asset } from './terms.ts'

/** Seconds by which a node's clock is wrong at most, with a reserve. */
const CLOCK_S = 300

interface Row {
  id: string
  status: string
  reason: string | null
  created_at: Date
}

/**
 * Checks that each payment was allowed by the document in force, that nothing but cancellations was
 * signed under a stop, and that rejected, expired and denied transfers had a reason and were not
 * signed.
 */
export async function wrongUnderPolicy(
  environment: SimulatedEnvironment,
  callers: Callers,
): Promise<string[]> {
  const { policy } = environment
  if (!policy) return []
  const oracle = new PolicyOracle(environment, policy, callers)
  oracle.checkSignatures()
  oracle.checkDecisions()
  await oracle.checkEnds()
  return oracle.problems
}

class PolicyOracle {
  readonly problems: string[] = []
  readonly #environment: SimulatedEnvironment
  readonly #policy: SimulatedPolicy
  readonly #callers: Callers
  readonly #naive: NaivePolicy
  readonly #assets: ReadonlyMap<string, Asset>

  constructor(environment: SimulatedEnvironment, policy: SimulatedPolicy, callers: Callers) {
    this.#environment = environment
    this.#policy = policy
    this.#callers = callers
    this.#naive = new NaivePolicy(policy, CLOCK_S)
    this.#assets = new Map(policy.assets.map((asset) => [asset.code, asset]))
  }

  checkSignatures(): void {
    const check = new SignatureCheck(this.#policy, this.#naive, (purpose) => {
      const wanted = this.#wantedOf(purpose)
      if (!wanted) return undefined
      const { id, sequence, caller, asset, units } = wanted
      return {
        id: id ?? sequence,
        authorization: sequence,
        subAccount: caller.subAccount,
        asset: this.#assets.get(asset) as Asset,
        units,
      }
    })
    for (const signature of this.#policy.nodes.signatures) check.check(signature)
    this.problems.push(...check.problems)
  }

  #wantedOf({ request }: Purpose): PlannedTransfer | undefined {
    if (request?.uri !== '/dac/v1/transaction') return undefined
    const { sequence_id: sequence } = JSON.parse(request.body) as { sequence_id?: string }
    return this.#callers.wanted.find((wanted) => wanted.sequence === sequence)
  }

  /** Decisions that must not count were refused. */
  checkDecisions(): void {
    const nodes = [
      [1, 2],
      [1, 3],
      [2, 3],
    ]
    for (const each of this.#policy.decisions) {
      if (each.result !== 'stored') continue
      const what = `the ${each.decision} of ${each.by} about ${each.id} was stored`
      if (each.isForged) this.problems.push(`${what}, and it is forged`)
      // A blocked key may reject. Two nodes verify an approval, and every pair contains a node that
      // knows the key to be blocked.
      if (
        each.decision === 'approve' &&
        nodes.every((pair) => this.#naive.isBlocked(each.by, each.key, pair, each.sentMs))
      )
        this.problems.push(`${what}, and the key ${each.key} is blocked`)
      // They may reject their own request, as a member of the group.
      if (each.by === REQUESTER && each.decision === 'approve')
        this.problems.push(`${what}, and they requested it`)
    }
  }

  /** Failed and refused transfers have a reason in what people did. */
  async checkEnds(): Promise<void> {
    const rows = await this.#environment.database.query<Row>(
      `select id, status, plan->>'reason' reason, created_at from transactions
        where kind = 'WITHDRAWAL'`,
    )
    const byId = new Map(rows.map((row) => [row.id, row]))
    for (const wanted of this.#callers.wanted) {
      const { sequence, refused, id } = wanted
      const row = id === null ? undefined : byId.get(id)
      if (refused?.startsWith('POLICY_DENIED') && !this.#isDeniable(wanted))
        this.problems.push(`${sequence}: it was refused, and no document denies it: ${refused}`)
      if (row) this.#checkEnd(wanted, row)
    }
  }

  #checkEnd(wanted: PlannedTransfer, { id, status, reason, created_at: at }: Row): void {
    const rejections = this.#policy.decisions.filter(
      (each: Decision) => each.id === id && each.decision === 'reject' && !each.isForged,
    )
    const wrong = (why: string) =>
      void this.problems.push(`${wanted.sequence}: it is ${status} (${reason}): ${why}`)
    if (rejections.some(({ result }) => result === 'stored') && status === 'confirmed')
      wrong('a person had rejected it')
    if (status !== 'failed' || reason === null) return
    if (reason.startsWith('APPROVAL_REJECTED') && rejections.length === 0)
      wrong('no person rejected it')
    const days = (this.#environment.schedule.nowMs - at.getTime()) / 86_400_000
    if (reason.startsWith('APPROVAL_EXPIRED') && days < 5.9) wrong('it is not six days old')
    if (/POLICY_DENIED/.test(reason) && !this.#isDeniable(wanted)) wrong('no document denies it')
  }

  /** Whether any document denies a transfer, whatever people approve. */
  #isDeniable({ caller, asset, units }: PlannedTransfer): boolean {
    const of = this.#assets.get(asset) as Asset
    return (
      caller.subAccount === LIMITED &&
      [...this.#policy.documents.values()].some(
        ({ terms: { denyMin, smallMax, largeMin } }) =>
          units >= unitsOf(of, denyMin) ||
          (units > unitsOf(of, smallMax) && largeMin !== null && units < unitsOf(of, largeMin)),
      )
    )
  }
}
