import type { KeyObject } from 'node:crypto'
import { parsePublicKey } from '@custody/request-auth'
import type { Environment } from '../environment.ts'
import type { Database } from '../database/pool.ts'
import type { Caller } from './endpoint.ts'
import { readRanges, type Range } from './ip-allow-list.ts'

export interface KnownCaller extends Caller {
  publicKey: KeyObject
  rateLimit: number | null
  /** Where it is used from; empty: from anywhere. */
  ipAllowList: readonly Range[]
  /** Whose own it is, of those who use the panel. */
  personId: string | null
}

/** A revocation reaches every API process within this time. */
const REMEMBER_MS = 1000
const REMEMBERED_MAX = 10_000
/** How exactly it is known when a key was last used. */
const USED_EVERY_MS = 60_000

/** Looks callers up by API key and keeps parsed public keys for a moment. */
export class Callers {
  readonly #database: Database
  readonly #environment: Environment
  readonly #known = new Map<string, { caller: KnownCaller | null; until: number }>()
  /** When this process last wrote down that a key was used. */
  readonly #used = new Map<string, number>()

  constructor(database: Database, environment: Environment) {
    this.#database = database
    this.#environment = environment
  }

  /** Null where the key is unknown or revoked. */
  async find(apiKey: string): Promise<KnownCaller | null> {
    const known = this.#known.get(apiKey)
    if (known && known.until > this.#environment.now()) return known.caller
    const row = await this.#database.one<{
      api_key: string; role: 'full' | 'read-only'; public_key_pem: string; rate_limit: number | null; sub_account_id: string
      ip_allow_list: string[]; person_id: string | null
      sub_account: string; path_index: number; workspace_id: string; workspace: string
    }>(
      `select u.api_key, u.role, u.public_key_pem, u.rate_limit, u.ip_allow_list, u.person_id,
              s.id sub_account_id, s.name sub_account, s.path_index,
              w.id workspace_id, w.name workspace
       from api_users u join sub_accounts s on s.id = u.sub_account_id join workspaces w on w.id = s.workspace_id
       where u.api_key = $1 and u.revoked_at is null`, [apiKey])
    const caller = row ? {
      apiKey: row.api_key, role: row.role, workspaceId: row.workspace_id, workspace: row.workspace, subAccountId: row.sub_account_id,
      subAccount: row.sub_account, subAccountIndex: row.path_index, publicKey: parsePublicKey(row.public_key_pem),
      rateLimit: row.rate_limit, ipAllowList: readRanges(row.ip_allow_list), personId: row.person_id,
    } : null
    // Unknown keys are not remembered: their number has no bound.
    if (caller) {
      if (this.#known.size >= REMEMBERED_MAX) this.#known.clear()
      this.#known.set(apiKey, { caller, until: this.#environment.now() + REMEMBER_MS })
    }
    return caller
  }

  /** Writes down that a key was used, at most once a minute. Nobody waits for it: a line that is lost is one minute's. */
  used(apiKey: string): void {
    const now = this.#environment.now()
    if (now - (this.#used.get(apiKey) ?? 0) < USED_EVERY_MS) return
    if (this.#used.size >= REMEMBERED_MAX) this.#used.clear()
    this.#used.set(apiKey, now)
    this.#database.query(
      `update api_users set last_used_at = $2 where api_key = $1 and (last_used_at is null or last_used_at < $2)`, [apiKey, new Date(now)]
    ).catch(() => this.#used.delete(apiKey))
  }

  forget(): void {
    this.#known.clear()
  }
}

declare module '../engine/services.ts' {
  interface Services { callers: Callers }
}
