import { ApiError } from '../errors.ts'
import type { Environment } from '../environment.ts'
import { clientNetworks } from '../http/client-network.ts'
import type { Trier } from './failures.ts'

/**
 * `running`: hashes at a time. Node's thread pool has four threads, which signatures, files and
 * names need too. `waiting`: the most that wait for one. `network`, `site`, `email`: the most that
 * run or wait of one IPv4 address or IPv6 /64, of one /48, and of one e-mail address; the last is
 * the number of tries before a lock.
 */
export const HASHING_MAX = { running: 2, waiting: 24, network: 5, site: 10, email: 5 } as const
type Limits = { readonly [Name in keyof typeof HASHING_MAX]: number }

/** `Retry-After` of a refusal: longer than the hashes of one network take. */
const RETRY_MS = 5000

interface Task {
  network: string
  site: string
  email: string
  start(): void
  refuse(error: ApiError): void
}

/**
 * A bounded queue for work that hashes passwords, which takes a core for half a second. What a
 * refusal depends on is known before anything is read of the person, so that it does not reveal
 * whether an e-mail address exists.
 */
export class PasswordQueue {
  readonly #environment: Pick<Environment, 'now'>
  readonly #limits: Limits
  readonly #running = new Set<Task>()
  readonly #waiting = new Set<Task>()

  constructor(environment: Pick<Environment, 'now'>, limits: Limits = HASHING_MAX) {
    this.#environment = environment
    this.#limits = limits
  }

  /**
   * Runs work that hashes a password of somebody, once there is a place for it. Where too many
   * wait, the newest task of the site with most of them is refused, in favour of a site with fewer.
   * @throws ApiError `RATE_LIMITED` where too many of the same network or e-mail address run or
   *   wait; `UNAVAILABLE` where too many wait in all. Both without delay, and before `work` begins.
   */
  run<T>({ email, ip }: Trier, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const task: Task = {
        ...clientNetworks(ip),
        email,
        refuse: reject,
        start: () => {
          // A failure to begin is a failure of the work.
          Promise.resolve()
            .then(work)
            .then(resolve, reject)
            .finally(() => {
              this.#running.delete(task)
              this.#next()
            })
        },
      }
      this.#assertQuota(task)
      if (this.#running.size < this.#limits.running) this.#start(task)
      else {
        if (this.#waiting.size >= this.#limits.waiting) this.#displaceFor(task)
        this.#waiting.add(task)
      }
    })
  }

  #assertQuota(task: Task): void {
    for (const name of ['network', 'site', 'email'] as const) {
      if (this.#of(name, task[name]) >= this.#limits[name]) {
        const who = name === 'email' ? 'with this e-mail address' : 'from this address'
        throw new ApiError(
          'RATE_LIMITED',
          `too many passwords are being checked ${who}; try again in a few seconds`,
          {
            details: { rate: { remaining: 0, reset: this.#environment.now() + RETRY_MS } },
          },
        )
      }
    }
  }

  #of(name: 'network' | 'site' | 'email', value: string): number {
    return [...this.#running, ...this.#waiting].filter((task) => task[name] === value).length
  }

  #displaceFor(task: Task): void {
    const refusal = () =>
      new ApiError(
        'UNAVAILABLE',
        'too many passwords are being checked; try again in a few seconds',
      )
    const counts = new Map([...this.#waiting].map(({ site }) => [site, this.#of('site', site)]))
    const most = Math.max(...counts.values())
    const victim = [...this.#waiting].findLast(({ site }) => counts.get(site) === most)
    if (!victim || most <= this.#of('site', task.site) + 1) throw refusal()
    this.#waiting.delete(victim)
    victim.refuse(refusal())
  }

  #start(task: Task): void {
    this.#running.add(task)
    task.start()
  }

  #next(): void {
    // One site after the other: a site with a task under way waits for those without.
    const busy = new Set([...this.#running].map(({ site }) => site))
    const waiting = [...this.#waiting]
    const task = waiting.find(({ site }) => !busy.has(site)) ?? waiting[0]
    if (!task) return
    this.#waiting.delete(task)
    this.#start(task)
  }
}
