import { changeSpender, type Attempt } from './attempts.ts'
import type { Environment } from '../environment.ts'
import type { Database } from '../database/pool.ts'
import type { RefusalKind, Registry } from '@custody/chains'
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
 * Time between the first two replacements of a refused transaction, in milliseconds. It doubles with
 * each further replacement, at most `REFUSED_DOUBLED_MAX` times.
 */
const REFUSED_RETRY_MS = 10_000
const REFUSED_DOUBLED_MAX = 10

/**
 * Schedules a replacement of a transaction that nodes refuse, if another gas limit or a higher fee can
 * change that. Such a transaction is never mined, and blocks all later transactions of its account. The
 * next engine step makes the replacement, within the caller's request.
 * @param attempts the refused transaction and the earlier ones of its transfer. While a node has an
 *   earlier one, a refused fee is not raised further.
 * @param kind why nodes refuse it
 */
export async function replaceRefused(
  services: Services,
  row: TransactionRow,
  attempts: readonly [Attempt, ...Attempt[]],
  kind: RefusalKind | null,
): Promise<void> {
  const { replaceable, client } = services.networks.get(row.network)
  const asset = services.registry.asset(row.asset)
  if (!replaceable || !asset) return
  const [newest, ...earlier] = attempts
  if (kind === 'gas') {
    if (!(await replaceable.lacksGas?.(row, asset, newest))) return
  } else if (kind === 'price') {
    for (const { hash } of earlier)
      if ((await client.status(hash, undefined, { fee: false })).state === 'mempool') return
    if ((await changeSpender(services.database, row, attempts)) !== null) return
  } else return
  await insertAuto(services, row, {
    afterMs: REFUSED_RETRY_MS,
    countMax: null,
    doubledMax: REFUSED_DOUBLED_MAX,
    refused: kind === 'price',
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
  await insertAuto(services, row, { afterMs, countMax: BUMPS_MAX, doubledMax: 0, refused: false })
}

/**
 * Inserts an automatic replacement for the next engine step. Does nothing while the previous one is
 * younger than `afterMs`, which doubles with each earlier replacement, at most `doubledMax` times.
 * @param countMax maximum number of automatic replacements; null: no limit
 * @param refused whether nodes refuse the transaction for its fee
 */
async function insertAuto(
  services: Services,
  row: TransactionRow,
  {
    afterMs,
    countMax,
    doubledMax,
    refused,
  }: { afterMs: number; countMax: number | null; doubledMax: number; refused: boolean },
): Promise<void> {
  await services.database.query(
    `insert into replacements (id, workspace_id, transaction_id, kind, plan, created_at, updated_at)
       select $1, $6, $2, 'AUTO', $8, $5::timestamptz, $5
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
      JSON.stringify(refused ? { refused: '1' } : {}),
    ],
  )
}
