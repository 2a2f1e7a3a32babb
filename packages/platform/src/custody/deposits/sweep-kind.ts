import type { Queryable, Database } from '../../core/database/pool.ts'
import { otherWalletPostings } from '../../core/engine/other-wallet.ts'
import { ENDED_IN_BLOCK, type Kind, type Outcome } from '../../core/engine/interfaces/kind.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Prices } from '../prices/prices.ts'
import { postSettled, reverseSettled } from '../../core/engine/settlement.ts'
import { endTransaction } from '../../core/engine/outcomes/settle.ts'
import type { Plan, TransactionRow } from '../../core/engine/transaction.ts'
import { floatPostings, overdraws } from '../gas-tanks/float.ts'
import { reclaimEnergy } from '../gas-tanks/energy-loan.ts'
import { releaseNetworkFee } from '../gas-tanks/release.ts'
import { sweepWaits } from './sweep-policy.ts'
import { queueSweep } from './sweeps.ts'

interface Services {
  settings: Pick<Settings, 'sweep'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  metrics: Metrics
  prices: Prices
}

/** SQL condition for the deposits to a sweep's address. */
const DEPOSITS = `kind = 'DEPOSIT' and sub_account_id = $5
  and lower(destination_id) = lower($2) and destination_id = $2 and wallet_id = $1`

/** A sweep: moves a deposit address's full balance of an asset to the omnibus address. */
export const sweepKind = (services: Services): Kind<'SWEEP'> => ({
  sweeps: true,
  states: [
    {
      state: 'QUEUED',
      run: 'build',
      next: ['FUELING', 'SIGNING', 'FAILED'],
      endsIfCancelled: true,
    },
    { state: 'FUELING', run: 'awaitFuel', next: ['SIGNING', 'FAILED'] },
    {
      state: 'SIGNING',
      run: 'sign',
      next: ['SIGNED', 'QUEUED', 'FUELING', 'FAILED'],
      endsIfCancelled: true,
    },
    { state: 'SIGNED', run: 'broadcast', next: ['BROADCASTING'] },
    {
      state: 'BROADCASTING',
      run: 'broadcast',
      next: ['CONFIRMING', 'REPLACING', 'QUEUED', 'FAILED'],
    },
    {
      state: 'CONFIRMING',
      run: 'confirm',
      next: ['CONFIRMED', 'REVERTED', 'BROADCASTING', 'REPLACING', 'QUEUED', 'FAILED'],
    },
    { state: 'REPLACING', run: 'replace', next: ['BROADCASTING'] },
    ...ENDED_IN_BLOCK,
    { state: 'FAILED', next: [] },
  ],
  postpones: (row, chain, o) => sweepWaits(services, row, chain, o),
  async purpose(row) {
    const address = await services.database.one<{ path_index: number; sub: number }>(
      `select c.path_index, s.path_index sub from chain_addresses c
        join sub_accounts s on s.workspace_id = c.workspace_id
        and s.id = c.sub_account_id
        where c.workspace_id = $3 and c.network = $1 and c.address = $2`,
      [row.network, row.source_id, row.workspace_id],
    )
    if (!address) throw new Error('a sweep has an unknown source address')
    return {
      kind: 'sweep',
      sub_account: address.sub,
      asset: row.asset,
      address_index: address.path_index,
    }
  },
  async settle(tx, row, o) {
    await book(services, tx, row, o)
    if (o.succeeded) await markSwept(tx, row)
    await reclaimEnergy(services, tx, row)
    await endTransaction(services, tx, row, o, false)
    await queueSweep(services, tx, row)
  },
  undo: (tx, row) => takeBack(tx, row),
  async release(tx, row) {
    await releaseNetworkFee(services, tx, row)
    return {}
  },
})

/** Marks the credited deposits of a sweep's address as swept. */
const markSwept = (tx: Queryable, row: TransactionRow) =>
  tx.query(
    `update transactions set state = 'SWEPT', updated_at = $3 where workspace_id = $4 and ${DEPOSITS} and state = 'CREDITED'`,
    [row.wallet_id, row.source_id, tx.now(), row.workspace_id, row.sub_account_id],
  )

/**
 * Takes back a booked sweep: its entries, and the state of the deposits that it moved. These were marked
 * after the last earlier sweep of the address had ended; later sweeps are taken back before it.
 */
async function takeBack(tx: Queryable, row: TransactionRow<'SWEEP'>): Promise<Plan<'SWEEP'>> {
  await reverseSettled(tx, row, ['settle'])
  await tx.query(
    `update transactions set state = 'CREDITED', updated_at = $3 where workspace_id = $4 and ${DEPOSITS} and state = 'SWEPT'
       and updated_at > coalesce((select max(s.updated_at) from transactions s
         where s.workspace_id = $4 and s.kind = 'SWEEP' and s.network = $6 and s.source_id = $2
           and s.asset = $7 and s.status = 'confirmed' and s.id <> $8), '-infinity')`,
    [
      row.wallet_id,
      row.source_id,
      tx.now(),
      row.workspace_id,
      row.sub_account_id,
      row.network,
      row.asset,
      row.id,
    ],
  )
  return {}
}

async function book(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  o: Outcome,
): Promise<void> {
  if (!services.networks.get(row.network).fuelled || row.plan.own === '1')
    return bookOwn(tx, row, o)
  const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const [amount, held] = [BigInt(row.amount), BigInt(row.plan.need ?? '0')]
  const moved = o.succeeded
    ? [
        { ...account, kind: 'unswept' as const, address: row.source_id, amount: -amount },
        { ...account, kind: 'available' as const, amount },
      ]
    : []
  await postSettled(
    tx,
    row,
    'settle',
    [...moved, ...floatPostings(row, held, o.fee)],
    overdraws(held, o.fee),
  )
}

/**
 * Books a sweep that pays for itself, out of the amount moved or (for a token) from another wallet
 * of the sub-account.
 */
async function bookOwn(tx: Queryable, row: TransactionRow, o: Outcome): Promise<void> {
  const account = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  const moved = o.succeeded ? BigInt(row.amount) : 0n
  const paysItself = row.plan.fee_wallet === undefined
  await postSettled(
    tx,
    row,
    'settle',
    [
      {
        ...account,
        kind: 'unswept',
        address: row.source_id,
        amount: -moved - (paysItself ? o.fee : 0n),
      },
      { ...account, kind: 'available', amount: moved },
      ...(paysItself
        ? [
            {
              workspace: row.workspace_id,
              asset: row.fee_asset,
              kind: 'chain' as const,
              amount: o.fee,
            },
          ]
        : otherWalletPostings(row, o.fee)),
      // Tron: if another transaction used the free bandwidth first, the fee was higher than the
      // amount reserved for it.
    ],
    overdraws(BigInt(row.plan.need ?? o.fee), o.fee),
  )
}
