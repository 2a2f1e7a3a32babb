import { ApiError } from '../../core/errors.ts'
import type { Environment } from '../../core/environment.ts'
import { clientNetworks } from '../../core/http/client-network.ts'
import type { Trier } from './failures.ts'

/**
 * Limits of password hashing. `running`: maximum number of concurrent hashes. Node's thread pool
 * has four threads, which signatures, files and name resolution need too. `waiting`: maximum number
 * of waiting tasks. `network`, `site`, `email`: maximum number of running and waiting tasks of one
 * IPv4 address or IPv6 /64, of one /48, and of one email address; the last is the number of
 * attempts before a lock.
 */
export const HASHING_MAX = { running: 2, waiting: 24, network: 5, site: 10, email: 5 } as const
type Limits = { readonly [Name in keyof typeof HASHING_MAX]: number }

/** `Retry-After` of a rejection, in milliseconds: longer than the hashes of one network take. */
const RETRY_MS = 5000

interface Task {
  network: string
  site: string
  email: string
  start(): void
  refuse(error: ApiError): void
}

/**
 * A bounded queue for work that hashes passwords, which occupies a core for half a second. A
 * rejection does not depend on data of the person, so it does not reveal whether an email address
 * exists.
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
   * Runs work that hashes a password, as soon as there is capacity for it. If too many tasks wait,
   * the newest task of the site with the most tasks is rejected, in favour of a site with fewer.
   * @throws ApiError `RATE_LIMITED` if too many tasks of the same network or email address run or
   *   wait; `UNAVAILABLE` if too many wait in total. Both are thrown without delay, and before
   *   `work` begins.
   */
  run<T>({ email, ip }: Trier, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const task: Task = {
        ...clientNetworks(ip),
        email,
        refuse: reject,
        start: () => {
          // `work` is called within a promise, so that an exception that it throws rejects the
          // result too.
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
    // Sites take turns: a site with a running task waits for sites without one.
    const busy = new Set([...this.#running].map(({ site }) => site))
    const waiting = [...this.#waiting]
    const task = waiting.find(({ site }) => !busy.has(site)) ?? waiting[0]
    if (!task) return
    this.#waiting.delete(task)
    this.#start(task)
  }
}
