import { ThresholdError } from '@custody/threshold'
import { Refusal } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/index.ts'

/** Threshold rule 7: a node that was proven to cheat is banned for ever, on record before any other message leaves. No other error bans. */
export class Bans {
  readonly #store: Store
  readonly #log: Log

  constructor(store: Store, log: Log) {
    this.#store = store
    this.#log = log
  }

  /** Writes the ban down when the engine proved a cheat. */
  consider(error: unknown): void {
    if (!(error instanceof ThresholdError) || error.code !== 'CHEAT' || error.counterparty === null) return
    if (this.#store.state.bans.has(error.counterparty)) return
    this.#store.append('ban', { node: error.counterparty, reason: error.message.slice(0, 200) })
    this.#log('alert', 'a node was proven to cheat and is banned: make new keys and move the funds', { peer: error.counterparty })
  }

  assertNot(node: number): void {
    if (this.#store.state.bans.has(node)) throw new Refusal('BANNED', `Node ${node} was proven to cheat; it is banned for ever`, { node })
  }

  assertNone(): void { for (const node of this.#store.state.bans.keys()) this.assertNot(node) }
}
