import type { Registry } from '@custody/chains'
import type { Networks } from '../../../core/engine/networks.ts'
import type { Prices } from '../../../custody/prices/prices.ts'
import { readdirSync } from 'node:fs'
import { reasonOf } from '@custody/chains/reason'
import { MIGRATIONS } from '../../../core/database/migrate.ts'
import { openDatabase, type Queryable, type Database } from '../../../core/database/pool.ts'
import { excessOf, roleFacts } from '../../../core/database/table-rights.ts'
import type { Command } from '../command.ts'
import { contradictionText } from '../../../core/engine/endpoints/belief.ts'
import { contradictionsOf } from '../../../custody/deposits/contradiction.ts'
import { contractPayments } from '../../../custody/assets/contract-payments.ts'
import { unpricedCoins } from '../../../custody/prices/coverage.ts'
import { ok, problem, warning, type Finding } from './findings.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
  prices: Prices
}

/** How coins that contracts pay are credited on a network. */
export interface ContractPaymentFacts {
  network: string
  contract_payments: 'credited' | 'watched' | 'by hand'
  watched_within_s: number | null
  /** Workspaces in which they are not credited now. */
  paused: { workspace: string; reason: string }[]
}

const VERSION_MIN = 150_000
const MEBIBYTE = 1024 ** 2
/**
 * Fraction of the server's maximum number of connections above which another process may not be
 * able to connect.
 */
const CONNECTIONS_SHARE = 0.9
const TIMEOUT_MS = 5000

/** State of a database. Its clock is not read, because no statement of the platform uses it. */
export interface DatabaseFacts {
  version: string
  version_num: number
  bytes: number
  read_only: boolean
  connections: number
  connections_max: number
  /** Names of the applied migrations; empty if there are none yet. */
  migrations: string[]
  /** What the platform's role can do that it need not do, as a sentence; null: nothing. */
  excess: string | null
}

async function databaseFacts(database: Queryable): Promise<DatabaseFacts> {
  const row = await database.one<
    Record<'version' | 'number' | 'bytes' | 'read_only' | 'used' | 'most' | 'migrated', string>
  >(
    `select current_setting('server_version') version, current_setting('server_version_num') number,
       pg_database_size(current_database())::text bytes,
       (pg_is_in_recovery() or current_setting('transaction_read_only') = 'on')::text read_only,
       (select count(*) from pg_stat_activity)::text used,
       current_setting('max_connections') most,
         (to_regclass('migrations') is not null)::text migrated`,
  )
  if (!row) throw new Error('the database returned no result')
  const names =
    row.migrated === 'true'
      ? await database.query<{ name: string }>('select name from migrations order by name')
      : []
  return {
    version: row.version,
    version_num: Number(row.number),
    bytes: Number(row.bytes),
    read_only: row.read_only === 'true',
    connections: Number(row.used),
    connections_max: Number(row.most),
    migrations: names.map(({ name }) => name),
    excess: excessOf(await roleFacts(database)),
  }
}

/** Returns how coins that contracts pay are credited on each network in use. */
async function contractPaymentFacts({
  database,
  registry,
  networks,
}: Services): Promise<ContractPaymentFacts[]> {
  const payments = await contractPayments({ database, registry })
  const paused = new Map(
    (
      await database.query<{ network: string; paused: { workspace: string; reason: string }[] }>(
        `select network, (select coalesce(json_agg(json_build_object('workspace', w.name,
           'reason', p.reason)), '[]') from jsonb_to_recordset(c.paused) p(workspace uuid, reason text)
           join workspaces w on w.id = p.workspace) paused from contract_watches c`,
      )
    ).map((row) => [row.network, row.paused]),
  )
  return networks.all().flatMap(({ network }) => {
    const native = registry.asset(network.native_asset)
    if (!native) return []
    const { contract_payments, watched_within_s } = payments(native)
    return [
      {
        network: network.code,
        contract_payments,
        watched_within_s,
        paused: paused.get(network.code) ?? [],
      },
    ]
  })
}

/** Returns the state of a running platform's database, prices and final blocks, for the doctor. */
export const doctorFacts: Command<Services> = async (services) => ({
  database: await databaseFacts(services.database),
  unpriced: unpricedCoins(services),
  contract_payments: await contractPaymentFacts(services),
  contradicted: [...(await contradictionsOf(services.database))].map(
    ([network, contradiction]) => ({
      network,
      ...contradiction,
      reason: contradictionText(network, contradiction),
    }),
  ),
})

/** Reads the state of a database by its configured URL, if no running platform can return it. */
export async function askDatabase(url: string, pooled: boolean): Promise<DatabaseFacts> {
  const database = openDatabase(url, { max: 1, pooled, answerMs: TIMEOUT_MS })
  try {
    return await databaseFacts(database)
  } finally {
    await database.close()
  }
}

/** Returns the finding about migrations that are not applied yet. */
function pendingFinding(pending: readonly string[], isRunning: boolean): Finding {
  const what = `migrations are missing: ${pending.join(', ')}`
  return isRunning
    ? problem('database', what, 'restart the platform with the version that is installed')
    : warning('database', what, 'the next start of the platform applies them: make a backup first')
}

/** Returns the finding about a role that has more rights than the platform's processes need. */
const excessFinding = (excess: string): Finding =>
  warning(
    'database',
    `${excess}: injected SQL could change the audit log and the ledger`,
    'set DATABASE_URL to a role with few rights, and DATABASE_MIGRATION_URL to the owner (docs/production/database.md)',
  )

/**
 * Returns the findings about a database.
 * @param facts its state, or why it could not be read
 * @param isRunning whether a platform runs, which applies migrations at its start
 */
export function databaseFindings(
  facts: DatabaseFacts | { error: unknown },
  isRunning: boolean,
): Finding[] {
  if ('error' in facts) {
    return [
      problem(
        'database',
        `cannot be queried: ${reasonOf(facts.error)}`,
        'check that the server runs, and check DATABASE_URL; docs/production/database.md',
      ),
    ]
  }
  const { version, version_num, bytes, read_only, connections, connections_max, migrations } = facts
  const files = readdirSync(MIGRATIONS)
    .filter((name) => name.endsWith('.sql'))
    .sort()
  const beyond = migrations.filter((name) => !files.includes(name))
  const pending = migrations.length === 0 ? [] : files.filter((name) => !migrations.includes(name))
  const matches: Finding[] = []
  if (version_num < VERSION_MIN)
    matches.push(
      problem('database', `PostgreSQL ${version} is too old`, 'upgrade it to 15 or later'),
    )
  if (read_only) {
    matches.push(
      problem(
        'database',
        'the server is read-only: it is a standby',
        'set DATABASE_URL to the primary (docs/production/database.md)',
      ),
    )
  }
  if (beyond.length > 0) {
    matches.push(
      problem(
        'database',
        `it was changed by a newer version (${beyond.join(', ')})`,
        'start that version, or restore a backup that was made before',
      ),
    )
  }
  if (pending.length > 0) matches.push(pendingFinding(pending, isRunning))
  if (connections > connections_max * CONNECTIONS_SHARE) {
    matches.push(
      warning(
        'database',
        `${connections} of ${connections_max} connections are in use`,
        'increase max_connections, or use a connection pooler (docs/production/database.md)',
      ),
    )
  }
  if (facts.excess !== null) matches.push(excessFinding(facts.excess))
  if (matches.length > 0) return matches
  const size = `${Math.ceil(bytes / MEBIBYTE)} MiB`
  return [
    ok(
      'database',
      migrations.length === 0
        ? `PostgreSQL ${version}, empty: the first start creates its tables`
        : `PostgreSQL ${version}, ${migrations.length} migrations, ${size}`,
    ),
  ]
}
