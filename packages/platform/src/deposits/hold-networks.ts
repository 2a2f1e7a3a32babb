import type { Loop } from '../engine/loop.ts'
import type { Services } from '../engine/services.ts'

/** A network is this process's for so long; it says so again before that is over. */
export const HOLD_MS = 10_000
/** Said again when so much is left: two more tries, should one fail. */
const RENEW_MS = 6000
const EVERY_MS_MAX = 1000

/**
 * Of several scanners one follows a network, and the others stand by: they ask no chain, and the
 * database only who holds what. One that dies is followed by another once its time is over; one
 * that ends in order gives its networks back. That two may think they hold a network for a moment
 * (clocks differ, a process was asleep) does no harm: each pass has a token of its own, and the one
 * that was taken over writes nothing.
 */
export class HeldNetworks {
  readonly #services: Services
  readonly #id: string
  readonly #networks: readonly string[]
  /** Until when each is ours, by this process's clock. */
  readonly #until = new Map<string, number>()

  /** @param id this process's @param networks those that it has an endpoint of */
  constructor(services: Services, id: string, networks: readonly string[]) {
    this.#services = services
    this.#id = id
    this.#networks = networks
  }

  holds(network: string): boolean {
    return (this.#until.get(network) ?? 0) > this.#services.environment.now()
  }

  /** Those that it holds now. */
  readonly followed = async (): Promise<Set<string>> =>
    new Set(this.#networks.filter((network) => this.holds(network)))

  /** Of `network_scans`, in SQL, at the time $1. */
  #due(): string {
    const mine = `holder = '${this.#id}' and held_until < $1::timestamptz + interval '${RENEW_MS} milliseconds'`
    return `height is not null and network in (${this.#networks.map((code) => `'${code}'`).join(', ')})
      and (holder is null or held_until < $1 or ${mine})`
  }

  /** Takes what nobody follows, and says again what is ours. */
  loop(): Loop {
    const { database, environment, settings, log } = this.#services
    const due = this.#networks.length === 0 ? 'false' : this.#due()
    return {
      name: 'hold networks',
      everyMs: Math.min(settings.pollMs, EVERY_MS_MAX),
      due: `exists (select 1 from network_scans where ${due})`,
      run: async () => {
        // From before the question: what the database counts from is no earlier.
        const until = environment.now() + HOLD_MS
        const rows = await database.query<{ network: string; was: string | null }>(
          `update network_scans s set holder = $2, held_until = $3,
             lease_until = case when s.holder = $2 then s.lease_until end, lease_token = case when s.holder = $2 then s.lease_token end
           from (select network, holder from network_scans where ${due} order by network for update skip locked) before
           where s.network = before.network returning s.network, before.holder was`,
          [database.now(), this.#id, new Date(until)],
        )
        for (const { network, was } of rows) {
          this.#until.set(network, until)
          if (was !== null && was !== this.#id)
            log.info(
              { network },
              'the scanner of this network is not running; this one takes the network over',
            )
        }
        return false
      },
    }
  }

  /** Gives all back, so that another need not wait. */
  async release(): Promise<void> {
    this.#until.clear()
    await this.#services.database.query(
      'update network_scans set holder = null, held_until = null where holder = $1',
      [this.#id],
    )
  }
}
