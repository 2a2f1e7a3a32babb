import { connectAll } from '../../src/server/app/connect.ts'
import type { ChainClient } from '@custody/chains'
import { Networks } from '../../src/core/engine/networks.ts'
import { chainsFetch } from '../chains/chains-fetch.ts'
import type { Devnet } from '../../../devnet/src/devnet.ts'
import type { Database } from '../../src/core/database/pool.ts'
import type { Application } from '../../src/server/app/application.ts'
import type { Weather, WeatherReport } from './weather.ts'

/**
 * Reasons for which a transfer may fail in a simulation: what callers and people did, and an expiry,
 * which {@link WeatherOracle.expired} checks when it happens. All payments are ones that the chains
 * would accept at any time, so no refusal of a chain is true.
 */
const TRUE_CAUSES = [
  /^it was cancelled/,
  /^(?:its fuel transaction failed: )?(?:it expired|one of its transactions expired)/,
  /^(?:the signer nodes reject it: )?(?:APPROVAL_|POLICY_|REQUEST_EXPIRED|FORWARD_TOO_SMALL)/,
  // Two nodes refused, because the simulation let them.
  /^(?:its fuel transaction failed: )?the signer nodes reject it: SHAPE: refused by the test/,
]

/** What the states of an endpoint must say in a weather; absent: they need not say anything. */
const NAMED: Partial<Record<Weather, RegExp>> = {
  'no-index': /builds its index of transactions/,
}
const BEHIND = /^it is behind: /

/** The parts of the simulation environment that this oracle uses. */
interface Context {
  readonly networks: readonly { network: { code: string } }[]
  readonly devnet: Devnet
  readonly weather: WeatherReport
  /** The oracle's own connection. */
  readonly database: Database
  readonly problems: string[]
}

interface Expiry {
  network: string
  valid_until: string | null
  hash: string
}

/**
 * Checks that no transfer ends by an answer about an old state, and that the platform names the
 * weather of an endpoint while it lasts. It asks the chains themselves, and not through the schedule.
 */
export class WeatherOracle {
  readonly #environment: Context
  readonly #present: Networks
  readonly #shown: Networks
  readonly #checks: Promise<void>[] = []

  /** @param services of a process that runs nothing */
  constructor(environment: Context, services: Application) {
    this.#environment = environment
    const context = { ...services, database: environment.database }
    const { devnet, weather } = environment
    const present = Object.fromEntries(
      environment.networks.map(({ network: { code } }) => [
        code,
        { endpoints: [{ url: `${devnet.url}/${code.toLowerCase()}` }], quorum: 1 },
      ]),
    )
    this.#present = new Networks(connectAll(context, present, chainsFetch(devnet)))
    this.#shown = new Networks(connectAll(context, weather.endpoints, weather.fetch))
  }

  /** Checks an expiry that the platform has just concluded, by the present state of the chain. */
  expired(hash: string): void {
    const failed = (error: unknown) =>
      void this.#environment.problems.push(`${hash}: ${String((error as Error).stack)}`)
    this.#checks.push(this.#checkExpiry(hash).catch(failed))
  }

  async #checkExpiry(hash: string): Promise<void> {
    const { database, problems } = this.#environment
    const row = await database.one<Expiry>(
      'select network, valid_until::text, hash from chain_transactions where hash = $1',
      [hash],
    )
    if (!row) return
    const client = this.#present.client(row.network) as ChainClient & {
      isDead(hash: string, validUntil: number): Promise<boolean>
    }
    if (!(await client.isDead(row.hash, Number(row.valid_until))))
      problems.push(
        `${row.network} ${hash}: it was taken for expired, and on the chain it was not (valid until ${row.valid_until})`,
      )
  }

  /** Resolves once all checks that were begun have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#checks.splice(0))
  }

  /** Checks that the states of endpoints name their weather. */
  async named(): Promise<void> {
    const { weather, problems, database } = this.#environment
    for (const code of new Set(weather.alone.map((each) => each.code))) {
      const states = (await this.#shown.get(code).belief?.states()) ?? []
      const scan = await database.one<{ height: string | null }>(
        'select height::text from network_scans where network = $1',
        [code],
      )
      for (const node of weather.alone.filter((each) => each.code === code)) {
        const isBehind = node.height !== null && node.height < Number(scan?.height ?? 0)
        const expected = isBehind ? BEHIND : NAMED[node.weather]
        const { doubt } = states.find(({ name }) => name === node.host) ?? { doubt: null }
        if (expected && !expected.test(doubt ?? ''))
          problems.push(`${node.host} is ${node.weather}, and the platform says: ${String(doubt)}`)
      }
    }
  }

  /** Returns the transfers that failed for a reason that was never true. */
  async wrong(): Promise<string[]> {
    const rows = await this.#environment.database.query<{
      id: string
      kind: string
      asset: string
      reason: string | null
    }>(`select id, kind, asset, failure_reason reason from transactions where status = 'failed'`)
    return rows
      .filter(({ reason }) => !TRUE_CAUSES.some((cause) => cause.test(String(reason))))
      .map(({ id, kind, asset, reason }) => `${kind} ${id} of ${asset} failed: ${String(reason)}`)
  }
}
