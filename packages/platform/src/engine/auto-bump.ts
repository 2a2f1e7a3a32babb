import { changeSpender, type Attempt } from './attempts.ts'
import type { Services } from './services.ts'
import type { TransactionRow } from './transaction.ts'

/**
 * Between the first two replacements of a transaction for its gas; doubled each time, at most so
 * often.
 */
const GAS_RETRY_MS = 10_000
const GAS_RETRY_DOUBLED_MAX = 10

/**
 * A transaction that nodes refuse because of its gas limit will never be mined as it is, and all
 * later ones of its account wait behind it. It is replaced, with the same nonce, by one with the
 * gas that the chain asks for now. It is done by the next step.
 * @param reason the node's refusal
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

/** A transaction that was bumped this often is bumped no more: its caller decides. */
const BUMPS_MAX = 5

/**
 * A transaction that has waited as long as its kind allows, while the market pays more, is bumped
 * by the platform itself, within what the caller's own request and the fuel at the address allow.
 * It is done by the next step.
 */
export async function bumpLowFee(
  services: Services,
  row: TransactionRow,
  attempts: readonly Attempt[],
): Promise<void> {
  const [newest] = attempts
  const { replaceable } = services.networks.get(row.network)
  const afterMs = services.kinds[row.kind].bumpAfterMs?.(services) ?? 0
  if (afterMs === 0 || !replaceable || !newest?.broadcast_at) return
  if (services.environment.now() - newest.broadcast_at.getTime() < afterMs) return
  if (!(await replaceable.marketPaysMore(row, newest))) return
  if ((await changeSpender(services.database, row, attempts)) !== null) return
  await insertAuto(services, row, { afterMs, countMax: BUMPS_MAX, doubledMax: 0 })
}

/**
 * Lets the next step replace a transaction by the platform's own decision; not while the last such
 * is younger than `afterMs`, which doubles with each that there was, at most `doubledMax` times.
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
       and (last is null or last <= $5::timestamptz - $4 * interval '1 millisecond' * power(2, least(times - 1, $7)))
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
