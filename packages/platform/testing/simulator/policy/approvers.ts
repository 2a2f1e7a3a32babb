import type { Statement } from '@custody/policy'
import type { Caller } from '../../../src/core/http/endpoint.ts'
import { Refused, type Callers } from '../callers.ts'
import type { SimulatedEnvironment } from '../environment.ts'
import { REQUESTER, signatureOf, TREASURY } from './people.ts'
import type { Decision } from './policy-record.ts'
import type { SimulatedPolicy } from './simulated-policy.ts'

/** Fields of a statement that the API returns. */
type Shown = { id: string; policy: { hash: string } } & Record<string, unknown>

/** How a person decides about a transfer. */
interface Plan {
  by: string
  decision: 'approve' | 'reject'
  /** Name of the key that signs. */
  signer: string
  /** Statement of another transfer, which is signed instead of that of this one. */
  other: Shown | null
  validS: number
  lateMs: number
  isTwice: boolean
}

const TRIES = 3
const AGAIN_MS = 5000
const LATE_MS_MAX = 120_000

/** People who read the inbox over the API, and approve or reject transfers. */
export class Approvers {
  readonly #environment: SimulatedEnvironment
  readonly #policy: SimulatedPolicy
  readonly #callers: Callers
  #open = 0
  /** Transfers that are left to expire. */
  readonly abandoned = new Set<string>()

  constructor(environment: SimulatedEnvironment, policy: SimulatedPolicy, callers: Callers) {
    this.#environment = environment
    this.#policy = policy
    this.#callers = callers
  }

  get isQuiet(): boolean {
    return this.#open === 0
  }

  /** Lets one person decide about one transfer. */
  act(): void {
    const { random } = this.#environment
    void this.#during(async () => {
      const open = await this.#inbox()
      if (open.length > 0) await this.#decide(random.of(open), () => this.#draw(open))
    })
  }

  /** Approves each open transfer, except a share that is left to expire. */
  settle(): void {
    const { random } = this.#environment
    if (!this.isQuiet) return
    void this.#during(async () => {
      for (const id of await this.#inbox()) {
        if (this.abandoned.has(id)) continue
        if (random.below(5) === 0) {
          this.abandoned.add(id)
          continue
        }
        for (const by of TREASURY.filter((each) => each !== REQUESTER))
          await this.#decide(id, () => this.#honest(by))
      }
    })
  }

  async #during(work: () => Promise<void>): Promise<void> {
    this.#open++
    try {
      await work()
    } catch (error) {
      if (!(error instanceof Refused) || error.status === 500)
        this.#environment.problems.push(`an approver: ${String((error as Error).stack)}`)
    } finally {
      this.#open--
    }
  }

  get #caller(): Caller {
    return this.#environment.callers[0] as Caller
  }

  async #get<T>(path: string): Promise<T> {
    return JSON.parse(await this.#callers.until(this.#caller, path, null)) as T
  }

  async #inbox(): Promise<string[]> {
    const { data } = await this.#get<{ data: { id: string }[] }>('/dac/v1/approvals')
    return data.map(({ id }) => id)
  }

  async #shown(id: string): Promise<Shown> {
    return (await this.#get<{ statement: Shown }>(`/dac/v1/approvals/${id}`)).statement
  }

  #honest(by: string): Plan {
    const plan = { by, decision: 'approve', signer: by, other: null } as const
    return { ...plan, validS: 86_400, lateMs: 0, isTwice: false }
  }

  async #draw(open: readonly string[]): Promise<Plan> {
    const { random } = this.#environment
    const by = random.of(TREASURY)
    const kind = random.below(10)
    return {
      ...this.#honest(by),
      decision: kind === 0 ? 'reject' : 'approve',
      signer: kind === 1 ? 'stranger' : by,
      other: kind === 2 && open.length > 1 ? await this.#shown(random.of(open)) : null,
      validS: random.of([120, 3600, 86_400]),
      lateMs: random.below(4) === 0 ? random.below(LATE_MS_MAX) : 0,
      isTwice: random.below(5) === 0,
    }
  }

  async #decide(id: string, planOf: () => Plan | Promise<Plan>): Promise<void> {
    const { schedule } = this.#environment
    const statement = await this.#shown(id)
    const plan = await planOf()
    if (plan.lateMs > 0) await this.#callers.pause(plan.lateMs)
    const { by, decision } = plan
    const hash = statement.policy.hash
    const key = this.#policy.documentOf(hash).terms.keys[by] as string
    const at = Math.floor(schedule.nowMs / 1000)
    const signed = { by, key, at, expires: at + plan.validS, decision }
    const signature = signatureOf(`${plan.signer}/${key}`, {
      kind: 'approval',
      ...(plan.other ?? statement),
      ...signed,
    } as unknown as Statement)
    const isForged = plan.signer !== by || (plan.other !== null && plan.other.id !== id)
    const entry: Decision = {
      id,
      ...signed,
      hash,
      isForged,
      sentMs: schedule.nowMs,
      answeredMs: null,
      result: null,
    }
    this.#policy.decisions.push(entry)
    this.#environment.noted(isForged ? 'an approval was forged' : `a person sent a decision`)
    const send = () => this.#send(entry, { ...signed, signature })
    await Promise.all(plan.isTwice ? [send(), send()] : [send()])
  }

  /** Sends a decision up to three times; the nodes may not be able to judge it now. */
  async #send(entry: Decision, body: Record<string, unknown>): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      try {
        await this.#callers.once(this.#caller, `/dac/v1/approvals/${entry.id}`, body)
        entry.result = 'stored'
      } catch (error) {
        if (!(error instanceof Refused) || error.status === 503 || error.status === 429) {
          await this.#callers.pause(AGAIN_MS)
          continue
        }
        if (error.status >= 500) throw error
        // One of two concurrent requests may find that the other one has decided the transfer.
        if (entry.result !== 'stored') entry.result = error.code
      }
      entry.answeredMs ??= this.#environment.schedule.nowMs
      return
    }
  }
}
