import { setTimeout as sleep } from 'node:timers/promises'
import { CustodyError } from '@custody/client'
import { SeededRandom } from '../simulator/seeded-random.ts'
import { atRest, endWell } from './checks.ts'
import type { Installation } from './installation.ts'
import { Payments, type PlannedPayment } from './payments.ts'

const REST_MS = 300_000

/**
 * The common part of the runs with a single fault: transfers before, during and after it, and the
 * properties that must hold at the end.
 */
export class ChaosRun {
  readonly problems: string[] = []
  readonly payments: Payments
  readonly installation: Installation
  readonly say: (line: string) => void
  readonly #random: SeededRandom
  readonly #begun = Date.now()
  readonly #under = new AbortController()
  readonly #sending: Promise<void>[] = []

  constructor(
    installation: Installation,
    assets: readonly string[],
    seed: number,
    say: (line: string) => void,
  ) {
    this.installation = installation
    this.payments = new Payments(installation, assets)
    this.#random = new SeededRandom(seed)
    this.say = (line) =>
      say(`${((Date.now() - this.#begun) / 1000).toFixed(0).padStart(4)} s: ${line}`)
  }

  async begin(): Promise<void> {
    await this.installation.start()
    await this.payments.open()
    this.say(
      `wallets of ${this.payments.places.map(({ asset }) => asset).join(', ')} have their coins`,
    )
  }

  /**
   * Adds this number of payments, and repeats each request until there is a response. Does not wait
   * for the responses.
   */
  send(count: number): void {
    for (let at = 0; at < count; at++)
      this.#sending.push(this.payments.pay(this.payments.want(this.#random), this.#under.signal))
  }

  /** Resolves when all sent requests have a response. */
  async answered(): Promise<void> {
    await Promise.all(this.#sending)
  }

  /** Records a problem if a condition does not hold. */
  expect(what: string, holds: boolean, seen: unknown = ''): void {
    this.say(`${holds ? 'yes' : 'NO '}  ${what}${holds ? '' : `: ${JSON.stringify(seen)}`}`)
    if (!holds) this.problems.push(`${what}: ${JSON.stringify(seen)}`)
  }

  /** Records a problem if a condition does not hold within a time. */
  async expectSoon(
    what: string,
    holds: () => Promise<boolean>,
    timeoutMs: number,
    seen: () => Promise<unknown> = async () => 'not in time',
  ): Promise<void> {
    const begun = Date.now()
    while (!(await holds().catch(() => false))) {
      if (Date.now() - begun > timeoutMs)
        return this.expect(what, false, await seen().catch(String))
      await sleep(200)
    }
    this.expect(`${what} (after ${((Date.now() - begun) / 1000).toFixed(1)} s)`, true)
  }

  /**
   * Sends one request now and returns the response; the payment must also be made by the end of the
   * run.
   */
  async tried(): Promise<{
    wanted: PlannedPayment
    status: number
    code: string
    message: string
  }> {
    const wanted = this.payments.want(this.#random)
    const { client } = wanted.wallets
    try {
      const { id } = await client.createTransaction({
        asset: wanted.place.asset,
        amount: wanted.amount,
        destination_address: wanted.place.to,
        sequence_id: wanted.sequence,
      })
      wanted.ids.add(id)
      wanted.id = id
      return { wanted, status: 200, code: '', message: '' }
    } catch (error) {
      if (!(error instanceof CustodyError)) throw error
      return { wanted, status: error.status, code: error.code, message: error.message }
    }
  }

  /**
   * Waits until the platform is ready and all transfers have ended. Checks that the ledger, the
   * responses and the chains agree.
   * @returns the problems
   */
  async end(): Promise<string[]> {
    const { installation, payments, problems } = this
    await installation.ready(180_000, '/readyz?deep')
    await this.answered()
    await Promise.all(
      payments.wanted
        .filter(({ id }) => id === null)
        .map((wanted) => payments.pay(wanted, this.#under.signal)),
    )
    this.#under.abort()
    await atRest(payments, REST_MS)
    this.say('all is at rest')
    const end = await endWell(installation, payments)
    problems.push(...end.problems)
    const ends = payments.wanted.map(({ end }) => end?.status ?? 'unknown')
    const counted = [...new Set(ends)]
      .map((end) => `${ends.filter((each) => each === end).length} ${end}`)
      .join(', ')
    this.say(
      `${payments.wanted.length} transfers (${counted}), ${end.compared} compared with the chains, ${installation.starts} starts of the platform`,
    )
    return problems
  }
}
