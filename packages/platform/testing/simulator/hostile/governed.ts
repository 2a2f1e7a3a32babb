import type { CarriedApproval, Statement } from '@custody/policy'
import type { OrderPolicy } from '../../../src/core/signing/approvals.ts'
import { GovernedNodes } from '../policy/governed-nodes.ts'
import { Governors, type GovernorContext, type WrittenPolicy } from '../policy/governors.ts'
import { NaivePolicy } from '../policy/naive-policy.ts'
import { NodeLosses, type LossContext } from '../policy/node-losses.ts'
import { possessionsOf, REQUESTER, signatureOf, TREASURY } from '../policy/people.ts'
import {
  PolicyRecord,
  WORKSPACE,
  type Decision,
  type KnownDocument,
} from '../policy/policy-record.ts'
import { SignatureCheck } from '../policy/signature-check.ts'
import { documentOf, drawTerms, FIRST_KEYS, type Asset, type Terms } from '../policy/terms.ts'
import { DECIMALS, type People, type PlannedRequest } from './requests.ts'

/** Base amount of payments under a policy, in the smallest units of the asset. */
export const UNIT = 50_000n
/** Seconds by which a node's clock may be wrong here, with a reserve. */
const CLOCK_S = 700
const APPROVALS_MAX = 8
/** Rule that the platform names at random; the last one does not exist. */
const VIAS = ['small', 'large', 'others', 'standing', 'most', 'other'] as const
/** Share of orders in which the platform names a rule, and of forged approvals; per thousand. */
const NAMED = 150
const FORGED = 400

/** A person's decision with its signature. */
interface Signed {
  decision: Decision
  carried: CarriedApproval
}

interface Context extends GovernorContext, LossContext {
  readonly people: People
  readonly nodes: GovernorContext['nodes'] & LossContext['nodes']
  /** Whether a node loses its record and is restored. */
  readonly hasLosses: boolean
  /** Lets a node judge a request; null if it refused. */
  judge(planned: PlannedRequest): Promise<unknown>
}

/** The policy of the workspace in a simulation with a hostile platform. */
class HostileRecord extends PolicyRecord implements WrittenPolicy {
  readonly nodes: GovernedNodes
  readonly #apiKeys: readonly string[]

  constructor(nodes: GovernedNodes, apiKeys: readonly string[]) {
    super()
    this.nodes = nodes
    this.#apiKeys = apiKeys
  }

  write(terms: Terms, previous: KnownDocument | null): KnownDocument {
    // The fee of a transaction is more than these amounts, so only the number is limited. Approvals
    // do not help small payments, so that their window is what refuses them.
    const counted = { ...terms, count: terms.count ?? 2, sum: null, largeMin: 15n }
    const { nodes } = this.nodes
    const place = { nodes, previous, apiKeys: this.#apiKeys, assets: [...ASSETS.values()] }
    return this.add(documentOf(counted, place), counted)
  }
}

const ASSETS: ReadonlyMap<string, Asset> = new Map(
  Object.entries(DECIMALS).map(([code, decimals]) => [code, { code, decimals, unit: UNIT }]),
)

/**
 * People who approve and change a policy, and what a hostile platform makes of their approvals. The
 * oracle checks each signature by what the people have signed.
 */
export class HostilePolicy {
  readonly nodes: GovernedNodes
  readonly #context: Context
  readonly #record: HostileRecord
  readonly #governors: Governors
  readonly #check: SignatureCheck
  /** Null: no node loses its record. */
  readonly #losses: NodeLosses | null
  readonly #signed: Signed[] = []
  #checked = 0
  #work: Promise<unknown> = Promise.resolve()

  constructor(nodes: GovernedNodes, context: Context) {
    this.nodes = nodes
    this.#context = context
    const { people } = context
    const limited = people.list.filter(({ subAccount }) => subAccount === 1)
    this.#record = new HostileRecord(
      nodes,
      limited.map(({ apiKey }) => apiKey),
    )
    this.#losses = context.hasLosses ? new NodeLosses(context, this.#record) : null
    this.#governors = new Governors(context, this.#record, {
      outside: (_label, act) => {
        const work = act()
        this.#work = Promise.allSettled([this.#work, work])
        return work
      },
    })
    this.#check = new SignatureCheck(
      this.#record,
      new NaivePolicy(this.#record, CLOCK_S),
      ({ request }) => {
        const planned = people.wishes.find(
          ({ request: { token, body, uri } }) =>
            token === request?.token && body === request.body && uri === request.uri,
        )
        if (!planned) return undefined
        const { person, asset, units, name } = planned
        return {
          id: planned.id,
          authorization: name,
          subAccount: `sub-${person.subAccount}`,
          asset: ASSETS.get(asset) as Asset,
          units,
        }
      },
    )
  }

  async install(): Promise<void> {
    const first = this.#record.write(drawTerms(this.#context.random, FIRST_KEYS), null)
    const { text: document } = first
    // A backup from before the policy does not name it.
    if (this.#losses && this.#context.random.below(2) === 0) await this.#losses.backup()
    await this.nodes.install({ workspace: WORKSPACE, document, possessions: possessionsOf(first) })
  }

  /**
   * Lets people act: most of them approve.
   * @returns milliseconds by which the time is to advance
   */
  async act(): Promise<number> {
    const { random, people } = this.#context
    await this.nodes.ping()
    await this.#losses?.act()
    if (random.below(3) === 0) this.nodes.heal()
    if (random.below(3) === 0) {
      this.#governors.resume(this.nodes.holderFrom(1 + random.below(3), WORKSPACE))
      await this.#work
    }
    if (random.below(4) > 0) {
      const planned = random.of(people.wishes)
      for (let count = 1 + random.below(3); count > 0; count--) await this.#decide(planned)
      return 0
    }
    const milliseconds = this.#governors.act()
    await this.#work
    return milliseconds
  }

  /** A person approves or rejects a payment that they want or do not want. */
  async #decide(planned: PlannedRequest): Promise<void> {
    const { random, schedule } = this.#context
    const judged = (await this.#context.judge(planned)) as { statement?: Statement } | null
    if (!judged?.statement) return
    const statement = judged.statement as unknown as { policy: { hash: string } }
    const { hash } = statement.policy
    const by = random.of(TREASURY)
    const key = this.#record.documentOf(hash).terms.keys[by] as string
    const at = Math.floor(schedule.nowMs / 1000)
    const decision = random.below(5) === 0 ? ('reject' as const) : ('approve' as const)
    const fields = { decision, by, key, at, expires: at + random.of([600, 86_400]) }
    const text = { kind: 'approval', ...statement, ...fields } as unknown as Statement
    const signature = signatureOf(`${by}/${key}`, text)
    const common = { isForged: false, sentMs: schedule.nowMs, answeredMs: null, result: null }
    const entry: Decision = { id: planned.id, ...fields, hash, ...common }
    this.#record.decisions.push(entry)
    this.#signed.push({ decision: entry, carried: { id: planned.id, ...fields, signature } })
  }

  /** What the platform sends with the order of payments: approvals that it has, or has made up. */
  orderPolicy(wishes: readonly PlannedRequest[]): OrderPolicy | undefined {
    const { random } = this.#context
    const ids = new Set(wishes.map(({ id }) => id))
    const own = this.#signed.filter(({ carried }) => ids.has(carried.id))
    const approvals = (random.rarely(FORGED) ? this.#forged([...ids], own) : honest(own)).slice(
      -APPROVALS_MAX,
    )
    const via = random.rarely(NAMED) ? { via: random.of(VIAS) } : {}
    return { ...(approvals.length > 0 ? { approvals } : {}), ...via } as OrderPolicy
  }

  #forged(ids: readonly string[], own: readonly Signed[]): CarriedApproval[] {
    const { random, schedule } = this.#context
    const id = random.of(ids)
    const people = TREASURY.filter((each) => each !== REQUESTER)
    const at = Math.floor(schedule.nowMs / 1000)
    switch (random.below(6)) {
      case 0:
        // Approvals of another transfer.
        return honest(this.#signed).map((each) => ({ ...each, id }))
      case 1:
        // Rejections as approvals.
        return own.map(({ carried }) => ({ ...carried, decision: 'approve' as const }))
      case 2:
        // Approvals of a stranger.
        return people.map((by) => {
          const fields = { id, decision: 'approve' as const, by, key: 'k1', at, expires: at + 600 }
          const statement = { kind: 'approval', ...fields } as unknown as Statement
          return { ...fields, signature: signatureOf('stranger/k1', statement) }
        })
      case 3:
        // One person's approval as that of each person.
        return honest(own).flatMap((each) => people.map((by) => ({ ...each, by })))
      case 4:
        // Approvals that have expired, with other times.
        return honest(own).map((each) => ({ ...each, at, expires: at + 600 }))
      default:
        // The same approvals several times.
        return honest(own).flatMap((each) => [each, each, { ...each, key: 'k2' }])
    }
  }

  /** Checks the signatures since the last call. */
  problems(): readonly string[] {
    for (; this.#checked < this.nodes.signatures.length; this.#checked++)
      this.#check.check(this.nodes.signatures[this.#checked]!)
    return this.#check.problems
  }
}

const honest = (signed: readonly Signed[]): CarriedApproval[] =>
  signed.filter(({ decision }) => decision.decision === 'approve').map(({ carried }) => carried)
