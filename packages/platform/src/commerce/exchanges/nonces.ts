import type { Queryable } from '../../core/database/pool.ts'
import { LOCK_MS, type Nonces } from './mutex.ts'

/**
 * Stores nonces and locks in the database, which all processes share. A nonce never decreases, even
 * if a clock goes back.
 */
export const databaseNonces = (database: Queryable): Nonces => ({
  async take(keyHash, token) {
    const now = database.now()
    const row = await database.one<{ last: string }>(
      `insert into exchange_nonces as n (key_hash, last, holder, held_until) values ($1, $2, $3, $4)
       on conflict (key_hash) do update set last = greatest(n.last + 1, excluded.last),
         holder = excluded.holder,
         held_until = excluded.held_until
       where n.holder is null or n.held_until < $5 returning last::text`,
      [keyHash, now.getTime(), token, new Date(now.getTime() + LOCK_MS), now],
    )
    return row ? BigInt(row.last) : null
  },
  async giveBack(keyHash, token) {
    await database.query(
      'update exchange_nonces set holder = null where key_hash = $1 and holder = $2',
      [keyHash, token],
    )
  },
})
