import type { Statement } from '@custody/policy'
import type { Item } from '../../../../signer/src/governance/items.ts'
import { NodeRefused } from '../../../src/core/signing/nodes.ts'
import type { Database } from '../../../src/core/database/pool.ts'
import type { InProcessNodes } from '../../in-process-nodes.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { ADMINS, placeOf, possessionsOf, REQUESTER, signedBy, TREASURY } from './people.ts'
import type { GovernedNodes } from './governed-nodes.ts'
import { WORKSPACE, type KnownDocument, type PolicyRecord } from './policy-record.ts'
import { drawTerms, HOURS, LIMITED, type Terms } from './terms.ts'

/** What people do about the policy, by its weight. `hour` and `minutes` are steps of the time. */
const ACTS = [
  'propose',
  'propose',
  'veto',
  'stop',
  'resume',
  'resume',
  'suspend',
  'revoke',
  'partition',
  'requeue',
  'hour',
  'hour',
  'minutes',
] as const
const HOUR_MS = (HOURS * 3600 + 300) * 1000
const MINUTES_MS = 700_000
const VALID_S = 3600

/** The parts of a simulation that people use who change a policy. */
export interface GovernorContext {
  readonly random: SeededRandom
  readonly schedule: { readonly nowMs: number }
  readonly nodes: Pick<InProcessNodes, 'call'>
  readonly nodeFaults: { isDown(node: number): boolean }
  readonly problems: string[]
  readonly lines: string[]
  /** Null: the platform has none. */
  readonly database: Pick<Database, 'query'> | null
  noted(kind: string): void
}

/** The policy of a workspace in a simulation. */
export interface WrittenPolicy extends PolicyRecord {
  readonly nodes: GovernedNodes
  write(terms: Terms, previous: KnownDocument | null): KnownDocument
}

/** Runs an act of a person in its scheduled turn. */
interface Turns {
  outside<T>(label: string, act: () => Promise<T>): Promise<T>
}

/** People who change the policy of the workspace, by statements that they present to the nodes. */
export class Governors {
  readonly #environment: GovernorContext
  readonly #policy: WrittenPolicy
  readonly #callers: Turns
  #keyCount = 1

  constructor(environment: GovernorContext, policy: WrittenPolicy, callers: Turns) {
    this.#environment = environment
    this.#policy = policy
    this.#callers = callers
  }

  /**
   * Starts one act.
   * @returns milliseconds by which the time is to advance
   */
  act(): number {
    const { random } = this.#environment
    const what = random.of(ACTS)
    const node = this.#policy.nodes.holderFrom(1 + random.below(3), WORKSPACE)
    switch (what) {
      case 'propose':
        this.#propose(node)
        return 0
      case 'veto':
        this.#veto(node)
        return 0
      case 'stop':
        this.#present(
          node,
          this.#statement(random.of(ADMINS), {
            kind: 'stop',
            sub_account: random.below(2) === 0 ? null : LIMITED,
            reason: 'A key was stolen',
          }),
        )
        return 0
      case 'resume':
        this.resume(node)
        return 0
      case 'suspend': {
        const person = random.of(TREASURY)
        const target = { person, key: this.#inForce(node).terms.keys[person] as string }
        this.#present(
          node,
          this.#statement(random.of(ADMINS), { kind: 'suspend', target, reason: 'It is lost' }),
        )
        return 0
      }
      case 'revoke':
        this.#revoke(node)
        return 0
      case 'partition':
        this.#environment.noted('the nodes were partitioned')
        this.#policy.nodes.cut(node, random.below(2) === 0 ? [1, 2, 3] : [1 + (node % 3)])
        return 0
      case 'requeue':
        this.#requeue()
        return 0
      case 'hour':
      case 'minutes':
        this.#environment.noted('the time advanced')
        return what === 'hour' ? HOUR_MS : MINUTES_MS
    }
  }

  /** Ends all stops at all nodes, once the nodes are connected. */
  async settle(): Promise<void> {
    const { nodes } = this.#policy
    nodes.heal()
    await nodes.ping()
    for (const node of [1, 2, 3]) if (nodes.isHolder(node, WORKSPACE)) this.resume(node)
  }

  /** Document in force at a node. */
  #inForce(node: number): KnownDocument {
    return this.#policy.documentOf(this.#governance(node).policy.hash)
  }

  #governance(node: number) {
    return this.#policy.nodes.governanceOf(node, WORKSPACE)
  }

  #text(by: string, fields: Record<string, unknown>): string {
    const at = Math.floor(this.#environment.schedule.nowMs / 1000)
    const common = { ...placeOf(this.#policy.first), by, at, expires: at + VALID_S }
    const { key = 'k1', ...others } = fields
    return signedBy(`${by}/${String(key)}`, { ...common, key, ...others } as unknown as Statement)
  }

  #statement(by: string, fields: Record<string, unknown>): Item {
    return { kind: 'statement', workspace: WORKSPACE, signed: this.#text(by, fields) }
  }

  /** Presents an item to a node; a refusal is a valid response unless the item is sure to be wrong. */
  #present(node: number, item: Item, isWrong = false): void {
    const { schedule, nodeFaults, nodes, problems } = this.#environment
    const act = async () => {
      if (nodeFaults.isDown(node)) return
      try {
        const answer = (await nodes.call(node, 'POST', '/policy/present', { item })) as {
          told: number[]
        }
        this.#environment.noted(`a node accepted ${nameOf(item)}`)
        this.#policy.presented.push({ atMs: schedule.nowMs, nodes: [node, ...answer.told], item })
        if (isWrong) problems.push(`node ${node} accepted ${JSON.stringify(item).slice(0, 500)}`)
      } catch (error) {
        if (!(error instanceof NodeRefused)) throw error
        this.#environment.lines.push(`node ${node} refused ${nameOf(item)}: ${error.message}`)
      }
    }
    this.#callers
      .outside(`node ${node} policy ${nameOf(item)}`, act)
      .catch((error: unknown) => problems.push(`a governor: ${String((error as Error).stack)}`))
  }

  #propose(node: number): void {
    const { random, schedule } = this.#environment
    const previous = this.#inForce(node)
    const next = this.#policy.write(
      drawTerms(random, this.#drawKeys(previous.terms.keys)),
      previous,
    )
    const { document, hash } = next
    const fields = {
      kind: 'change',
      policy: { number: previous.document.number, hash: previous.hash },
      next: { number: document.number, hash },
      acts_at: Math.floor(schedule.nowMs / 1000) + previous.terms.delayS,
    }
    const isWrong = random.below(4) === 0
    const people = isWrong ? random.of([['alice'], ['alice', 'dan']]) : ['alice', 'bob']
    const approvals = people.map((by) =>
      this.#text(by, { ...fields, key: previous.terms.keys[by] ?? 'k1' }),
    )
    const possessions = possessionsOf(next)
    const item = {
      kind: 'change',
      workspace: WORKSPACE,
      document: next.text,
      possessions,
      approvals,
    }
    this.#present(node, item as Item, isWrong)
  }

  /** Gives one person of the treasury another key, or none. */
  #drawKeys(keys: Terms['keys']): Terms['keys'] {
    const { random } = this.#environment
    return random.below(2) === 0 ? keys : { ...keys, [random.of(TREASURY)]: `k${++this.#keyCount}` }
  }

  #veto(node: number): void {
    const { policy, next } = this.#governance(node)
    if (next === null) return this.#propose(node)
    const { document, hash } = next.policy
    const fields = {
      kind: 'veto',
      policy: { number: policy.document.number, hash: policy.hash },
      next: { number: document.number, hash },
    }
    this.#present(node, this.#statement(this.#environment.random.of(ADMINS), fields))
  }

  /** Ends the stops that a node has. */
  resume(node: number): void {
    const { policy, stops } = this.#governance(node)
    for (const { hash: stop } of stops) {
      const text = this.#policy.stopText(stop)
      const fields = {
        kind: 'resume',
        policy: { number: policy.document.number, hash: policy.hash },
        stop,
      }
      const approvals = ['alice', 'carol'].map((by) => this.#text(by, fields))
      this.#present(node, { kind: 'resumed', workspace: WORKSPACE, stop: text, approvals })
    }
  }

  #revoke(node: number): void {
    const person = this.#environment.random.of(TREASURY.filter((each) => each !== REQUESTER))
    const key = this.#inForce(node).terms.keys[person] as string
    this.#present(node, this.#statement(person, { kind: 'revoke', key, target: { person, key } }))
  }

  /** Changes the state of waiting transfers in the database, as an intruder there would. */
  #requeue(): void {
    const { database, problems } = this.#environment
    if (database === null) return
    this.#environment.noted('transfers that wait for approvals were queued in the database')
    this.#callers
      .outside('forge states', () =>
        database.query(
          `update transactions set state = 'QUEUED', next_run_at = $1
           where state = 'APPROVAL' and lease_until is null`,
          [new Date(this.#environment.schedule.nowMs)],
        ),
      )
      .catch((error: unknown) => problems.push(`an intruder: ${String((error as Error).stack)}`))
  }
}

const nameOf = (item: Item): string =>
  item.kind === 'statement'
    ? (JSON.parse(item.signed) as { statement: Statement }).statement.kind
    : item.kind
