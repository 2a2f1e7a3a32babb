import { tokenOwner } from '../../custody/aml/policy.ts'
import { lockMigrations } from '../../core/database/migrate.ts'
import type { Database } from '../../core/database/pool.ts'
import { credentialsOwner } from '../../commerce/exchanges/account.ts'
import { ownerOfTotp } from '../../console-api/people/sign-in.ts'
import { secretOwner } from '../reserves/publish.ts'
import type { Secrets } from '../../core/secrets.ts'
import { PLATFORM_KEY_OWNER } from '../../events/webhooks/platform-key.ts'
import { webhookOwner } from '../../events/webhooks/webhook.ts'
import { AWAY_MS } from './health/role-health.ts'
import { MARK_OWNER } from './secrets-key.ts'

interface Sealed {
  table: string
  column: string
  id: string
  owner: (id: string) => string
}

/** All columns that contain data sealed with the secrets key. */
export const SEALED: readonly Sealed[] = [
  { table: 'aml_settings', column: 'sealed_token', id: 'sub_account_id', owner: tokenOwner },
  { table: 'exchange_accounts', column: 'sealed_credentials', id: 'id', owner: credentialsOwner },
  { table: 'people', column: 'totp_secret', id: 'id', owner: ownerOfTotp },
  { table: 'reserve_snapshots', column: 'secret', id: 'id', owner: secretOwner },
  {
    table: 'webhook_keys',
    column: 'sealed_private_key',
    id: 'one',
    owner: () => PLATFORM_KEY_OWNER,
  },
  { table: 'webhooks', column: 'sealed_previous_secret', id: 'id', owner: webhookOwner },
  { table: 'webhooks', column: 'sealed_secret', id: 'id', owner: webhookOwner },
  // This column is last: once it is committed, a process with the old key does not start.
  { table: 'installation', column: 'sealed_mark', id: 'one', owner: () => MARK_OWNER },
]

/**
 * Checks that no process of the platform is running, because it would continue with the old key.
 * @throws Error if a process was seen a moment ago
 */
async function assertStopped(database: Pick<Database, 'one' | 'now'>): Promise<void> {
  const seen = await database.one<{ role: string; host: string; seen_at: Date }>(
    'select role, host, seen_at from processes order by seen_at desc limit 1',
  )
  if (!seen) return
  const ago = database.now().getTime() - seen.seen_at.getTime()
  if (ago >= AWAY_MS) return
  throw new Error(
    `the ${seen.role} on ${seen.host} was active ${Math.max(0, Math.round(ago / 1000))} s ago: stop every process of the platform, and run this command again ${AWAY_MS / 1000} s later`,
  )
}

/**
 * Seals everything in the database with another secrets key, in one transaction. No process of the
 * platform may run.
 * @returns number of secrets in each table
 * @throws Error that names the table if something cannot be opened with the old key; nothing is
 *   changed in that case
 */
export async function reseal(
  database: Database,
  from: Secrets,
  to: Secrets,
): Promise<Record<string, number>> {
  return database.transaction(async (tx) => {
    // A process that starts now waits here until the new mark is written.
    await lockMigrations(tx)
    await assertStopped({ one: tx.one.bind(tx), now: database.now })
    const counts: Record<string, number> = {}
    for (const { table, column, id, owner } of SEALED) {
      const rows = await tx.query<{ id: string; sealed: Buffer }>(
        `select ${id}::text id, ${column} sealed from ${table} where ${column} is not null
          order by 1`,
      )
      // Triggers make this table append-only for all other statements.
      if (table === 'reserve_snapshots')
        await tx.query('alter table reserve_snapshots disable trigger user')
      for (const row of rows) {
        let secret: string
        try {
          secret = from.open(owner(row.id), row.sealed)
        } catch {
          throw new Error(
            `${table} ${row.id}: ${column} cannot be decrypted: check that CUSTODY_SECRETS_KEY, or secrets.key in the home, is the key of this database. Nothing was changed`,
          )
        }
        await tx.query(`update ${table} set ${column} = $2 where ${column} = $1`, [
          row.sealed,
          to.seal(owner(row.id), secret),
        ])
      }
      if (table === 'reserve_snapshots')
        await tx.query('alter table reserve_snapshots enable trigger user')
      counts[table] = (counts[table] ?? 0) + rows.length
    }
    return counts
  })
}
