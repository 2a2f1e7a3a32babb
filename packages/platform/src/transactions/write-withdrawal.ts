import { Batch } from '../batch.ts'
import { isPassing, type Queryable } from '../database/pool.ts'

/** What `create_withdrawal` answers. */
export type Written =
  | { replayed: false }
  | { replayed: true; response: string; payload_hash: string }

/** In its place where one was refused: as PostgreSQL tells errors. */
interface Refused {
  code: string
  message: string
  detail: string
}

type Outcome = Written | Refused

/** Written by one commit: as many hold the wallet for some hundredths of a second. */
const WRITTEN_MAX = 32

/** One that is to be written, as JSON text. */
interface Asked {
  id: string
  text: string
}

/** Calls under way by wallet or workspace, one at a time for each. */
class Lines<Item, Answer> {
  readonly #lines = new Map<string, Batch<Item, Answer>>()
  readonly #write: (name: string, items: readonly Item[]) => Promise<readonly Answer[]>

  constructor(write: (name: string, items: readonly Item[]) => Promise<readonly Answer[]>) {
    this.#write = write
  }

  isBusy(name: string): boolean {
    return this.#lines.has(name)
  }

  async ask(name: string, item: Item): Promise<Answer> {
    let line = this.#lines.get(name)
    if (!line)
      this.#lines.set(
        name,
        (line = new Batch((items) => this.#write(name, items), { most: WRITTEN_MAX, lanes: 1 })),
      )
    return line.ask(item).finally(() => {
      if (line.isIdle && this.#lines.get(name) === line) this.#lines.delete(name)
    })
  }
}

/**
 * Writes withdrawals. Those that a workspace is asked for at the same time have one commit: they
 * wait for the row of its prepaid account anyway. What that leaves out is written wallet by wallet.
 */
export class Withdrawals {
  readonly #database: Queryable
  readonly #workspaces: Lines<Asked, boolean>
  readonly #wallets: Lines<string, Outcome>

  constructor(database: Queryable) {
    this.#database = database
    this.#workspaces = new Lines((workspace, all) => this.#writeTogether(workspace, all))
    this.#wallets = new Lines((_wallet, all) => this.#write(all))
  }

  /**
   * What one of them is refused for is its own.
   * @param withdrawal as `create_withdrawal.sql` takes it
   * @throws what `create_withdrawal` raises
   */
  async write(wallet: string, withdrawal: Record<string, unknown>): Promise<Written> {
    const text = JSON.stringify(withdrawal)
    // While its wallet's own are written nobody else is made to wait for that.
    if (isPlain(withdrawal) && !this.#wallets.isBusy(wallet)) {
      const { id, workspace_id: workspace } = withdrawal
      if (await this.#workspaces.ask(workspace, { id, text })) return { replayed: false }
    }
    const outcome = await this.#wallets.ask(wallet, text)
    if (!('code' in outcome)) return outcome
    throw Object.assign(new Error(outcome.message), { code: outcome.code, detail: outcome.detail })
  }

  /** @returns of each whether it is written; of the others nothing is known */
  async #writeTogether(workspace: string, all: readonly Asked[]): Promise<boolean[]> {
    try {
      const row = await this.#database.one<{ ids: string[] }>(
        'select write_withdrawals($1, $2) ids',
        [workspace, `[${all.map(({ text }) => text).join()}]`],
      )
      const ids = new Set(row?.ids)
      return all.map(({ id }) => ids.has(id))
    } catch (error) {
      // Nothing is written. Whose fault it was is found one by one.
      if (isPassing(error)) throw error
      return all.map(() => false)
    }
  }

  async #write(withdrawals: readonly string[]): Promise<Outcome[]> {
    if (withdrawals.length === 1) {
      const row = await this.#database.one<{ result: Written }>(
        'select create_withdrawal($1) result',
        [withdrawals[0]],
      )
      return [(row as { result: Written }).result]
    }
    const row = await this.#database.one<{ results: Outcome[] }>(
      'select create_withdrawals($1) results',
      [`[${withdrawals.join()}]`],
    )
    return (row as { results: Outcome[] }).results
  }
}

interface Plain {
  id: string
  workspace_id: string
  platform_fee: string
  prepaid_tier: string
}

/**
 * Whether nothing but coins and a fee is held for it, and the fee was quoted by a tier that can be
 * checked.
 */
function isPlain(
  withdrawal: Record<string, unknown>,
): withdrawal is Record<string, unknown> & Plain {
  const {
    invoice_id: invoice,
    exchange_transfer: exchange,
    platform_fee: fee,
    prepaid_tier: tier,
  } = withdrawal
  return (
    invoice === null && exchange === null && typeof fee === 'string' && typeof tier === 'string'
  )
}

declare module '../engine/services.ts' {
  interface Services {
    withdrawals: Withdrawals
  }
}
