import { setTimeout as sleep } from 'node:timers/promises'
import type { SeededRandom } from '../simulator/seeded-random.ts'
import { KINDS, type Installation, type Kind } from './installation.ts'

/** Relative frequency of each kind. */
const WEIGHTS: Record<Kind, number> = {
  platform: 2,
  PostgreSQL: 2,
  'a PostgreSQL backend': 2,
  'signer 1': 3,
  'signer 2': 3,
  'signer 3': 3,
  chains: 2,
  'Ethereum engine': 2,
}
/**
 * Kinds of faults after which no instance answers for some seconds. If they came every few seconds,
 * an installation would do nothing but start.
 */
const GREAT: ReadonlySet<Kind> = new Set(['platform', 'PostgreSQL', 'a PostgreSQL backend'])
/**
 * Number per thousand of these faults that are injected even while no instance answers, so that
 * starts and recoveries are killed too.
 */
const GREAT_AGAIN = 100
const DRAWN: readonly Kind[] = KINDS.flatMap((kind) =>
  Array.from({ length: WEIGHTS[kind] }, () => kind),
)

/** Kills random processes with SIGKILL until it is stopped. */
export class RandomKills {
  readonly kills = new Map<Kind, number>(KINDS.map((kind) => [kind, 0]))
  readonly #installation: Installation
  readonly #random: SeededRandom

  constructor(installation: Installation, random: SeededRandom) {
    this.#installation = installation
    this.#random = random
  }

  get total(): number {
    return [...this.kills.values()].reduce((sum, count) => sum + count, 0)
  }

  strike(kind: Kind): boolean {
    const isDone = this.#installation.kill(kind, this.#random.below(1000))
    if (isDone) this.kills.set(kind, (this.kills.get(kind) ?? 0) + 1)
    return isDone
  }

  /**
   * Kills one process about every `everyMs` milliseconds, at random times. If the drawn process is
   * not running, draws another one.
   */
  async rage(everyMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(everyMs / 2 + this.#random.below(Math.max(1, everyMs)))
      const mayGreat = (await this.#installation.answers()) || this.#random.rarely(GREAT_AGAIN)
      const kinds = mayGreat ? DRAWN : DRAWN.filter((kind) => !GREAT.has(kind))
      for (let tries = 0; tries < 5 && !signal.aborted; tries++)
        if (this.strike(this.#random.of(kinds))) break
    }
  }

  /** Kills each kind `times` times, one after the other, each once its process is running. */
  async each(times: number, pauseMs: number, signal: AbortSignal): Promise<void> {
    for (let round = 0; round < times; round++) {
      for (const kind of KINDS) {
        while (!signal.aborted && !this.strike(kind)) await sleep(50)
        await sleep(pauseMs)
        // The other processes start together with the platform.
        if (kind === 'platform') await this.#installation.ready()
      }
    }
  }
}
