import { Batch } from '../batch.ts'
import type { Queryable } from '../database/pool.ts'

/** What `create_withdrawal` answers. */
export type Written = { replayed: false } | { replayed: true; response: string; payload_hash: string }

/** In its place where one was refused: as PostgreSQL tells errors. */
interface Refused { code: string; message: string; detail: string }

type Outcome = Written | Refused

/** Written by one commit: as many hold the wallet for some hundredths of a second. */
const WRITTEN_MAX = 32

/** Writes withdrawals. Those that one wallet is asked for at the same time have one commit: they wait for its row anyway. */
export class Withdrawals {
  readonly #database: Queryable
  /** By wallet: those that have something under way. */
  readonly #wallets = new Map<string, Batch<string, Outcome>>()

  constructor(database: Queryable) {
    this.#database = database
  }

  /**
   * What one of them is refused for is its own.
   * @param withdrawal as `create_withdrawal.sql` takes it
   * @throws what `create_withdrawal` raises
   */
  async write(walletId: string, withdrawal: Record<string, unknown>): Promise<Written> {
    let batch = this.#wallets.get(walletId)
    if (!batch) this.#wallets.set(walletId, batch = new Batch((all) => this.#write(all), { most: WRITTEN_MAX, lanes: 1 }))
    const outcome = await batch.ask(JSON.stringify(withdrawal)).finally(() => {
      if (batch.isIdle && this.#wallets.get(walletId) === batch) this.#wallets.delete(walletId)
    })
    if (!('code' in outcome)) return outcome
    throw Object.assign(new Error(outcome.message), { code: outcome.code, detail: outcome.detail })
  }

  async #write(withdrawals: readonly string[]): Promise<Outcome[]> {
    if (withdrawals.length === 1) {
      const row = await this.#database.one<{ result: Written }>('select create_withdrawal($1) result', [withdrawals[0]])
      return [(row as { result: Written }).result]
    }
    const row = await this.#database.one<{ results: Outcome[] }>('select create_withdrawals($1) results', [`[${withdrawals.join()}]`])
    return (row as { results: Outcome[] }).results
  }
}

declare module '../engine/services.ts' {
  interface Services {
    withdrawals: Withdrawals
  }
}
