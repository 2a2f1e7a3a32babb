import type { Network } from '@custody/chains'
import type { Services } from './services.ts'
import type { TransactionRow } from './transaction.ts'
import { whyFinal } from './replacements.ts'
import { changeSpender, decodedAttempts, type Attempt } from './attempts.ts'

/** All of a tank's transactions wait behind one that is stuck, so fuel is bumped whether the operator turned it on or not. */
const FUEL_AFTER_MS = 60_000
/** What has been bumped this often waits for its caller. */
const BUMPS_MAX = 5

/**
 * Where the operator turned it on, and fuel always: a transaction that has waited long, while the market pays more, is bumped by the
 * platform itself, within what the caller's own request and the fuel at the address allow. It is done by the next step.
 */
export async function bumpLowFee(services: Services, row: TransactionRow, network: Network, attempts: readonly Attempt[]): Promise<void> {
  const [newest] = attempts
  const afterMs = row.kind === 'FUEL' ? FUEL_AFTER_MS : row.kind === 'WITHDRAWAL' ? services.settings.feeBumpAfterMs : 0
  if (afterMs === 0 || whyFinal(network) !== null || !newest?.broadcast_at) return
  if (services.environment.now() - newest.broadcast_at.getTime() < afterMs) return
  const [decoded] = await decodedAttempts(services, row, network, [newest])
  if (!decoded || !await marketPaysMore(services, network, decoded)) return
  if (await changeSpender(services.database, attempts) !== null) return
  await services.database.query(
    `insert into replacements (id, transaction_id, kind, created_at, updated_at) select $1, $2, 'AUTO', $5::timestamptz, $5
     where (select count(*) from replacements where transaction_id = $2 and kind = 'AUTO') < $3
       and not exists (
         select 1 from replacements where transaction_id = $2 and kind = 'AUTO' and created_at > $5::timestamptz - $4 * interval '1 millisecond')
     on conflict do nothing`,
    [services.environment.uuid(), row.id, BUMPS_MAX, afterMs, services.database.now()])
}

async function marketPaysMore(services: Services, network: Network, { vsize, fee_max: fee, max_fee_per_gas: price }: { vsize: number | null; fee_max: bigint; max_fee_per_gas: bigint | null }): Promise<boolean> {
  if (vsize !== null) return (await services.networks.utxoFeeRates(network.code)).medium * BigInt(vsize) > fee * 1000n
  return (await services.networks.evmFeeRates(network.code)).medium.maxFeePerGas > (price ?? 0n)
}
