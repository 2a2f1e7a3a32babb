import { changeSpender, type Attempt } from './attempts.ts'
import type { Environment } from '../environment.ts'
import type { Database } from '../database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from './networks.ts'
import type { Kinds } from './interfaces/kind.ts'
import type { TransactionRow } from './transaction.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  kinds: Kinds
}

/**
 * Time between the first two replacements of a transaction for too little gas, in milliseconds. It
 * doubles with each further replacement, at most `GAS_RETRY_DOUBLED_MAX` times.
 */
const GAS_RETRY_MS = 10_000
const GAS_RETRY_DOUBLED_MAX = 10

/**
 * Schedules a replacement with the same nonce and the currently estimated gas for a transaction
 * that nodes reject because of its gas limit. Such a transaction is never mined and blocks all
 * later transactions of its account. The next engine step makes the replacement.
 * @param reason the node's error message
 */
export async function replaceForGas(
  services: Services,
  row: TransactionRow,
  newest: Attempt,
  reason: string,
): Promise<void> {
  const { replaceable } = services.networks.get(row.network)
  const asset = services.registry.asset(row.asset)
  if (!replaceable?.lacksGas || !asset || !(await replaceable.lacksGas(row, asset, newest, reason)))
    return
  await insertAuto(services, row, {
    afterMs: GAS_RETRY_MS,
    countMax: null,
    doubledMax: GAS_RETRY_DOUBLED_MAX,
  })
}

/**
 * Maximum number of automatic fee bumps of one transaction. After that, only the caller can bump
 * it.
 */
const BUMPS_MAX = 5

/**
 * Schedules a fee bump for a transaction that has waited as long as its kind allows while the
 * market pays more. The bump stays within the caller's request and the fuel at the address. The
 * next engine step makes it.
 */
export async function bumpLowFee(
  services: Services,
  row: TransactionRow,
  attempts: readonly Attempt[],
): Promise<void> {
  const [newest] = attempts
  const { replaceable } = services.networks.get(row.network)
  const afterMs = services.kinds[row.kind].bumpAfterMs?.() ?? 0
  if (afterMs === 0 || !replaceable || !newest?.broadcast_at) return
  if (services.environment.now() - newest.broadcast_at.getTime() < afterMs) return
  if (!(await replaceable.marketPaysMore(row, newest))) return
  if ((await changeSpender(services.database, row, attempts)) !== null) return
  await insertAuto(services, row, { afterMs, countMax: BUMPS_MAX, doubledMax: 0 })
}

/**
 * Inserts an automatic replacement for the next engine step. Does nothing while the previous one is
 * younger than `afterMs`, which doubles with each earlier replacement, at most `doubledMax` times.
 * @param countMax maximum number of automatic replacements; null: no limit
 */
async function insertAuto(
  services: Services,
  row: TransactionRow,
  {
    afterMs,
    countMax,
    doubledMax,
  }: { afterMs: number; countMax: number | null; doubledMax: number },
): Promise<void> {
  await services.database.query(
    `insert into replacements (id, workspace_id, transaction_id, kind, created_at, updated_at)
       select $1, $6, $2, 'AUTO', $5::timestamptz, $5
     from (select count(*) times, max(created_at) last from replacements
           where workspace_id = $6 and transaction_id = $2 and kind = 'AUTO') before
     where ($3::integer is null or times < $3)
       and (last is null or last <= $5::timestamptz - $4 * interval '1 millisecond' * power(2,
         least(times - 1, $7)))
     on conflict do nothing`,
    [
      services.environment.uuid(),
      row.id,
      countMax,
      afterMs,
      services.database.now(),
      row.workspace_id,
      doubledMax,
    ],
  )
}
