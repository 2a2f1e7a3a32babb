import type { ApiRole } from '@custody/request-auth/roles'
import type { KeyObject } from 'node:crypto'
import { parsePublicKey } from '@custody/request-auth'
import type { Environment } from '../../environment.ts'
import { within, type Database } from '../../database/pool.ts'
import type { Caller } from '../endpoint.ts'
import { Batch } from '../../batch.ts'
import { readRanges, type Range } from './ip-allow-list.ts'
import { windowOf } from '../rate-limit.ts'

export interface KnownCaller extends Caller {
  publicKey: KeyObject
  rateLimit: number | null
  /** Address ranges that the key may be used from; empty: any address. */
  ipAllowList: readonly Range[]
  /** Person who owns the key, if it belongs to a user of the control panel. */
  personId: string | null
}

/** Cache time in milliseconds. A revocation reaches every API process within this time. */
const REMEMBER_MS = 1000
const REMEMBERED_MAX = 10_000
/** Resolution of a key's last-used time, in milliseconds. */
const USED_EVERY_MS = 60_000

/** Maximum number of requests in one admission call, and of concurrent admission calls. */
const ADMITTED_MAX = 200
const ADMITTING_MAX = 1

/**
 * A request whose signature was verified. `subject`: the name under which the request is counted.
 */
interface Asking {
  apiKey: string
  nonce: string
  subject: string
  limit: number
}

/**
 * Result of admitting a request. `requests`: requests of the subject in this window, including this
 * one.
 */
interface Admitted {
  nonceOk: boolean
  requests: number
  window: { start: number; end: number }
}

/**
 * Looks up callers by API key and caches them for a short time. A public key is only parsed again
 * after it has changed.
 */
export class Callers {
  readonly #database: Database
  readonly #environment: Environment
  readonly #cache = new Map<string, { caller: KnownCaller; pem: string; at: number }>()
  /** Lookups in progress. Concurrent lookups of the same key share one result. */
  readonly #looking = new Map<string, Promise<KnownCaller | null>>()
  /** Time at which this process last stored that a key was used. */
  readonly #used = new Map<string, number>()
  readonly #admissions: Batch<Asking, Admitted>

  constructor(database: Database, environment: Environment) {
    this.#database = database
    this.#environment = environment
    this.#admissions = new Batch((asking) => this.#admit(asking), {
      most: ADMITTED_MAX,
      lanes: ADMITTING_MAX,
    })
  }

  /**
   * Spends the nonce and counts the request, durably. A request above its limit does not spend its
   * nonce.
   */
  admit(asking: Asking): Promise<Admitted> {
    // The time limit includes the wait behind an earlier call that does not return. The request may
    // still be admitted later, without effect.
    return within(this.#admissions.ask(asking), this.#database.shortTimeoutMs)
  }

  /** Counts further requests of a subject in a window, for a request that counts several times. */
  async charge(subject: string, requests: number, window: { start: number }): Promise<void> {
    await this.#database.query(
      `insert into rate_windows as w (subject, window_start, requests) values ($1, $2, $3)
       on conflict (subject, window_start) do update set requests = w.requests + excluded.requests`,
      [subject, new Date(window.start), requests],
    )
  }

  async #admit(asking: readonly Asking[]): Promise<Admitted[]> {
    const now = this.#environment.now()
    const window = windowOf(now)
    const rows = await this.#database.query<{ nonce_ok: boolean; requests: number }>(
      'select nonce_ok, requests from admit_requests($1, $2, $3, $4, $5, $6)',
      [
        asking.map(({ apiKey }) => apiKey),
        asking.map(({ nonce }) => nonce),
        asking.map(({ subject }) => subject),
        asking.map(({ limit }) => limit),
        new Date(window.start),
        new Date(now),
      ],
    )
    return rows.map(({ nonce_ok: nonceOk, requests }) => ({ nonceOk, requests, window }))
  }

  /** Returns the caller with this API key, or null if the key is unknown or revoked. */
  async find(apiKey: string): Promise<KnownCaller | null> {
    const existing = this.#cache.get(apiKey)
    if (existing && Math.abs(this.#environment.now() - existing.at) < REMEMBER_MS)
      return existing.caller
    const pending = this.#looking.get(apiKey)
    if (pending) return pending
    const looking = this.#look(apiKey).finally(() => {
      if (this.#looking.get(apiKey) === looking) this.#looking.delete(apiKey)
    })
    this.#looking.set(apiKey, looking)
    return looking
  }

  async #look(apiKey: string): Promise<KnownCaller | null> {
    const row = await this.#database.one<{
      api_key: string
      role: ApiRole
      public_key_pem: string
      rate_limit: number | null
      sub_account_id: string
      ip_allow_list: string[]
      person_id: string | null
      sub_account: string
      path_index: number
      workspace_id: string
      workspace: string
    }>(
      `select u.api_key, u.role, u.public_key_pem, u.rate_limit, u.ip_allow_list, u.person_id,
              s.id sub_account_id, s.name sub_account, s.path_index,
              w.id workspace_id, w.name workspace
       from api_users u join sub_accounts s on s.id = u.sub_account_id
         join workspaces w on w.id = s.workspace_id
       where u.api_key = $1 and u.revoked_at is null`,
      [apiKey],
    )
    const existing = this.#cache.get(apiKey)
    const caller = row
      ? {
          apiKey: row.api_key,
          role: row.role,
          workspaceId: row.workspace_id,
          workspace: row.workspace,
          subAccountId: row.sub_account_id,
          subAccount: row.sub_account,
          subAccountIndex: row.path_index,
          publicKey:
            existing?.pem === row.public_key_pem
              ? existing.caller.publicKey
              : parsePublicKey(row.public_key_pem),
          rateLimit: row.rate_limit,
          ipAllowList: readRanges(row.ip_allow_list),
          personId: row.person_id,
        }
      : null
    // Unknown keys are not cached, because their number is unbounded.
    if (row && caller) {
      if (this.#cache.size >= REMEMBERED_MAX) this.#cache.clear()
      this.#cache.set(apiKey, { caller, pem: row.public_key_pem, at: this.#environment.now() })
    } else this.#cache.delete(apiKey)
    return caller
  }

  /**
   * Stores that a key was used, at most once a minute. The write is not awaited: a lost write only
   * makes the time one minute older.
   */
  used(apiKey: string): void {
    const now = this.#environment.now()
    if (Math.abs(now - (this.#used.get(apiKey) ?? 0)) < USED_EVERY_MS) return
    if (this.#used.size >= REMEMBERED_MAX) this.#used.clear()
    this.#used.set(apiKey, now)
    this.#database
      .query(
        `update api_users set last_used_at = $2 where api_key = $1
          and (last_used_at is null or last_used_at < $2)`,
        [apiKey, new Date(now)],
      )
      .catch(() => this.#used.delete(apiKey))
  }

  forget(): void {
    this.#cache.clear()
    this.#looking.clear()
  }
}
