import { Batch } from '../../core/batch.ts'
import { isPassing, type Queryable } from '../../core/database/pool.ts'

/** Result of the SQL function `create_withdrawal`. */
export type Written =
  | { replayed: false }
  | { replayed: true; response: string; payload_hash: string }

/** Result for a withdrawal that was refused, with the fields of a PostgreSQL error. */
interface Refused {
  code: string
  message: string
  detail: string
}

type Outcome = Written | Refused

/**
 * Maximum number of withdrawals per commit; that many lock the wallet for a few hundredths of a
 * second.
 */
const WRITTEN_MAX = 32

/** A withdrawal to write, as JSON text. */
interface PendingWithdrawal {
  id: string
  text: string
}

/** Pending calls by wallet or workspace; one call at a time for each. */
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
 * Writes withdrawals. Concurrent withdrawals of a workspace share one commit, because they wait for
 * the row of its prepaid fee account anyway. The ones that this leaves out are written per wallet.
 */
export class Withdrawals {
  readonly #database: Queryable
  readonly #workspaces: Lines<PendingWithdrawal, boolean>
  readonly #wallets: Lines<string, Outcome>

  constructor(database: Queryable) {
    this.#database = database
    this.#workspaces = new Lines((workspace, all) => this.#writeTogether(workspace, all))
    this.#wallets = new Lines((_wallet, all) => this.#write(all))
  }

  /**
   * Writes one withdrawal. An error affects only this withdrawal.
   * @param withdrawal fields as defined in `create_withdrawal.sql`
   * @throws errors raised by `create_withdrawal`
   */
  async write(wallet: string, withdrawal: Record<string, unknown>): Promise<Written> {
    const text = JSON.stringify(withdrawal)
    // While withdrawals of the wallet are being written separately, this one does not delay the
    // rest of the workspace.
    if (isPlain(withdrawal) && !this.#wallets.isBusy(wallet)) {
      const { id, workspace_id: workspace } = withdrawal
      if (await this.#workspaces.ask(workspace, { id, text })) return { replayed: false }
    }
    const outcome = await this.#wallets.ask(wallet, text)
    if (!('code' in outcome)) return outcome
    throw Object.assign(new Error(outcome.message), { code: outcome.code, detail: outcome.detail })
  }

  /**
   * Writes withdrawals of a workspace in one statement.
   * @returns for each withdrawal whether it was written; false: it was left out, without a reason
   */
  async #writeTogether(workspace: string, all: readonly PendingWithdrawal[]): Promise<boolean[]> {
    try {
      const row = await this.#database.one<{ ids: string[] }>(
        'select write_withdrawals($1, $2) ids',
        [workspace, `[${all.map(({ text }) => text).join()}]`],
      )
      const ids = new Set(row?.ids)
      return all.map(({ id }) => ids.has(id))
    } catch (error) {
      // Nothing was written. The withdrawals are retried one by one to find the one at fault.
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
 * Whether the withdrawal only reserves coins and a fee, and its fee was quoted for a tier that can
 * be checked.
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
