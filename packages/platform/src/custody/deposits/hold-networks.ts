import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Logger } from 'pino'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  log: Logger
}

/**
 * Milliseconds for which this process holds a network. It renews the hold before that time is over.
 */
export const HOLD_MS = 10_000
/**
 * Remaining time in milliseconds at which a hold is renewed, which leaves two more attempts if one
 * fails.
 */
const RENEW_MS = 6000
const EVERY_MS_MAX = 1000

/**
 * Assigns networks to scanners. With several scanners, one follows a network and the others stand
 * by: they do not query the chain and only check the holder in the database. If a scanner dies,
 * another takes over when its hold expires; a scanner that shuts down releases its networks. It
 * does no harm if two scanners briefly believe that they hold a network (different clocks, a
 * suspended process): each pass has its own token, and the scanner that was replaced cannot write.
 */
export class HeldNetworks {
  readonly #services: Services
  readonly #id: string
  readonly #networks: readonly string[]
  /** Until when this process holds each network, by its own clock. */
  readonly #until = new Map<string, number>()

  /**
   * Creates the assignment without any network.
   * @param id id of this process
   * @param networks networks for which this process has an endpoint
   */
  constructor(services: Services, id: string, networks: readonly string[]) {
    this.#services = services
    this.#id = id
    this.#networks = networks
  }

  holds(network: string): boolean {
    return (this.#until.get(network) ?? 0) > this.#services.environment.now()
  }

  /** Returns the networks that this process holds now. */
  readonly followed = async (): Promise<Set<string>> =>
    new Set(this.#networks.filter((network) => this.holds(network)))

  /**
   * SQL condition on `network_scans` at time $1: the network can be taken or its hold must be
   * renewed.
   */
  #due(): string {
    const mine = `holder = '${this.#id}' and held_until < $1::timestamptz + interval '${RENEW_MS} milliseconds'`
    return `height is not null and network in (${this.#networks.map((code) => `'${code}'`).join(', ')})
      and (holder is null or held_until < $1 or ${mine})`
  }

  /** Creates the loop that takes networks without a holder and renews this process's holds. */
  loop(): Loop {
    const { database, environment, settings, log } = this.#services
    const due = this.#networks.length === 0 ? 'false' : this.#due()
    return {
      name: 'hold networks',
      everyMs: Math.min(settings.pollMs, EVERY_MS_MAX),
      due: `exists (select 1 from network_scans where ${due})`,
      run: async () => {
        // The time is read before the query, so that it is not later than the time used by the
        // database.
        const until = environment.now() + HOLD_MS
        const rows = await database.query<{ network: string; was: string | null }>(
          `update network_scans s set holder = $2, held_until = $3,
             lease_until = case when s.holder = $2 then s.lease_until end, lease_token = case
               when s.holder = $2 then s.lease_token end
           from (select network, holder from network_scans where ${due} order by network
             for update skip locked) before
           where s.network = before.network returning s.network, before.holder was`,
          [database.now(), this.#id, new Date(until)],
        )
        for (const { network, was } of rows) {
          this.#until.set(network, until)
          if (was !== null && was !== this.#id)
            log.info(
              { network },
              'the process that scanned this network is not running; this process takes over the network',
            )
        }
        return false
      },
    }
  }

  /** Releases all networks, so that another process does not have to wait. */
  async release(): Promise<void> {
    this.#until.clear()
    await this.#services.database.query(
      'update network_scans set holder = null, held_until = null where holder = $1',
      [this.#id],
    )
  }
}
