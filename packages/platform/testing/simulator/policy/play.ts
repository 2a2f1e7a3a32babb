import type { Callers } from '../callers.ts'
import type { SimulatedEnvironment } from '../environment.ts'
import { Approvers } from './approvers.ts'
import { Governors } from './governors.ts'
import { NodeLosses } from './node-losses.ts'
import { isRestoringSeed } from './simulated-policy.ts'
import { HOURS } from './terms.ts'

/** Advances the time at once, when no caller waits. */
type Skip = (milliseconds: number) => Promise<void>

const HOUR_MS = (HOURS * 3600 + 300) * 1000
/** Time in which an approval is requested and expires, with a reserve. */
const EXPIRY_MS = (6 * 24 + 1) * 3_600_000
/** Number of times that people try to approve a transfer before they leave it to expire. */
const TRIES = 4
/** Simulated time after which a transfer that a window may hold is given more time. */
const PATIENCE_MS = 120_000
/** Maximum number of steps of the time after the faults have ended. */
const SKIPS_MAX = 24

/** States in which the policy may hold a transfer. */
const HELD = new Set(['QUEUED', 'APPROVAL', 'FUELING', 'SIGNING'])

interface Waiting {
  id: string
  state: string
  last_error: string | null
}

/** What people do in a simulation whose workspace has a policy. */
export class PolicyPlay {
  readonly #environment: SimulatedEnvironment
  readonly #approvers: Approvers | null = null
  readonly #governors: Governors | null = null
  /** Null: no node loses its record. */
  readonly #losses: NodeLosses | null = null
  readonly #tries = new Map<string, number>()
  #skippedAtMs = 0
  #skips = 0

  constructor(environment: SimulatedEnvironment, callers: Callers) {
    this.#environment = environment
    const { policy } = environment
    if (!policy) return
    this.#approvers = new Approvers(environment, policy, callers)
    this.#governors = new Governors(environment, policy, callers)
    if (!isRestoringSeed(Number(environment.seed))) return
    this.#losses = new NodeLosses(environment, policy)
    environment.nodeFaults.isLost = (node) => policy.nodes.isLost(node)
  }

  get isOn(): boolean {
    return this.#approvers !== null
  }

  get isQuiet(): boolean {
    return this.#approvers?.isQuiet ?? true
  }

  /**
   * Starts one act.
   * @returns milliseconds by which the time is to advance
   */
  act(): number {
    if (this.#environment.random.below(2) === 1) return this.#governors?.act() ?? 0
    this.#approvers?.act()
    return 0
  }

  /** Lets the nodes exchange what they have, and sometimes ends their partition. */
  async tick(): Promise<void> {
    const { policy, random } = this.#environment
    if (!policy) return
    if (random.below(4) === 0) policy.nodes.heal()
    await policy.nodes.ping()
    await this.#losses?.act()
  }

  /**
   * Ends the stops, approves what waits or leaves it to expire, and advances the time if everything
   * waits for it.
   * @returns whether nothing waits for people or time
   */
  async settle(skip: Skip): Promise<boolean> {
    if (!this.#approvers || !this.#governors) return true
    const { database, schedule } = this.#environment
    await this.#losses?.settle()
    await this.#governors.settle()
    const waiting = await database.query<Waiting>(
      `select id, state, last_error from transactions where status = 'pending'
        and not (kind = 'SWEEP' and plan ? 'waits') order by id`,
    )
    if (waiting.length === 0) return this.isQuiet
    this.#settleApprovals(waiting)
    if (!this.isQuiet) return false
    const { abandoned } = this.#approvers
    if (waiting.every(({ id, state }) => state === 'APPROVAL' && abandoned.has(id)))
      await this.#skip(skip, EXPIRY_MS)
    else if (
      waiting.every(({ state }) => HELD.has(state)) &&
      schedule.nowMs > this.#skippedAtMs + PATIENCE_MS
    )
      await this.#skip(skip, this.#isBlocked(waiting) ? EXPIRY_MS : HOUR_MS)
    return false
  }

  /** Whether hours have not helped, because transfers wait for one that is left to expire. */
  #isBlocked(waiting: readonly Waiting[]): boolean {
    return (
      this.#skips >= SKIPS_MAX / 2 && waiting.some(({ id }) => this.#approvers?.abandoned.has(id))
    )
  }

  async #skip(skip: Skip, milliseconds: number): Promise<void> {
    if (this.#skips++ < SKIPS_MAX) await skip(milliseconds)
    this.#skippedAtMs = this.#environment.schedule.nowMs
  }

  #settleApprovals(waiting: readonly Waiting[]): void {
    const approvers = this.#approvers as Approvers
    if (!approvers.isQuiet) return
    const open = waiting.filter(
      ({ id, state }) => state === 'APPROVAL' && !approvers.abandoned.has(id),
    )
    for (const { id } of open) {
      const tries = (this.#tries.get(id) ?? 0) + 1
      this.#tries.set(id, tries)
      if (tries > TRIES) approvers.abandoned.add(id)
    }
    if (open.length > 0) approvers.settle()
  }
}
