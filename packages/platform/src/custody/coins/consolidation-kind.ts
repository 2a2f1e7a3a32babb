import type { Registry } from '@custody/chains'
import type { Database, Queryable } from '../../core/database/pool.ts'
import { freeChange } from '../../core/engine/attempts.ts'
import {
  ENDED_IN_BLOCK,
  type Kind,
  type Outcome,
  type StateRule,
} from '../../core/engine/interfaces/kind.ts'
import { wakeBuilding } from '../../core/engine/lease.ts'
import { endTransaction } from '../../core/engine/outcomes/settle.ts'
import { receiptsOf } from '../../core/engine/request.ts'
import { postSettled, reverseSettled } from '../../core/engine/settlement.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { Environment } from '../../core/environment.ts'
import { post } from '../../core/ledger/post.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Settings } from '../../core/settings/settings.ts'

interface Services {
  settings: Pick<Settings, 'feeBumpAfterMs'>
  environment: Environment
  database: Database
  registry: Registry
  metrics: Metrics
}

type Row = TransactionRow<'CONSOLIDATION'>

const STATES: readonly StateRule<'CONSOLIDATION'>[] = [
  { state: 'QUEUED', run: 'build', next: ['SIGNING', 'VOIDING'] },
  { state: 'SIGNING', run: 'sign', next: ['SIGNED', 'QUEUED', 'VOIDING'] },
  { state: 'SIGNED', run: 'broadcast', next: ['BROADCASTING'] },
  {
    state: 'BROADCASTING',
    run: 'broadcast',
    next: ['CONFIRMING', 'REPLACING', 'QUEUED', 'VOIDING'],
  },
  {
    state: 'CONFIRMING',
    run: 'confirm',
    next: ['CONFIRMED', 'REVERTED', 'BROADCASTING', 'REPLACING', 'QUEUED', 'VOIDING'],
  },
  { state: 'REPLACING', run: 'replace', next: ['BROADCASTING'] },
  { state: 'VOIDING', run: 'void', next: ['FAILED', 'SIGNING', 'CONFIRMING'] },
  ...ENDED_IN_BLOCK,
  { state: 'FAILED', next: [] },
]

/**
 * Merges coins of a wallet by its caller's request. The coins stay in the wallet, so only the network
 * fee is reserved and booked. The merged coin is spendable once the transaction is confirmed.
 */
export const consolidationKind = (services: Services): Kind<'CONSOLIDATION'> => ({
  states: STATES,
  spendsBalance: () => true,
  async purpose(row) {
    return {
      kind: 'consolidate',
      ...(await receiptsOf(services, row.request, 'transactions', row.id)),
    }
  },
  async settle(tx, row, o) {
    await settle(tx, row, o)
    const amount = await noteCoin(tx, row)
    await endTransaction(services, tx, { ...row, amount }, o, true)
    if (row.wallet_id !== null) await wakeBuilding(tx, row.workspace_id, row.wallet_id)
  },
  async undo(tx, row) {
    await reverseSettled(tx, row, ['settle'])
    await tx.query(
      `update utxos set contested = true, spendable = false
       where workspace_id = $1 and network = $2 and origin = 'change' and txid = $3`,
      [row.workspace_id, row.network, row.hash],
    )
    return {}
  },
  // The caller's request is missing for one that was adopted.
  isAskedFor: (row) => row.request !== null,
  async release(tx, row) {
    const account = accountOf(row)
    const held = heldOf(row)
    await post(tx, 'release', row.id, [
      { ...account, kind: 'reserved', amount: -held },
      { ...account, kind: 'available', amount: held },
    ])
    return {}
  },
  bumpAfterMs: () => services.settings.feeBumpAfterMs,
})

const accountOf = (row: Row) => ({
  workspace: row.workspace_id,
  wallet: row.wallet_id,
  asset: row.asset,
})

/** Returns what is reserved for the network fee, in the smallest unit. */
const heldOf = (row: Row): bigint => BigInt(row.plan.fee_reserve ?? '0')

/** Books the fee of a confirmed consolidation, out of its reservation. */
async function settle(tx: Queryable, row: Row, { fee }: Outcome): Promise<void> {
  const account = accountOf(row)
  const held = heldOf(row)
  await postSettled(tx, row, 'settle', [
    { ...account, kind: 'reserved', amount: -held },
    { ...account, wallet: null, kind: 'chain', amount: fee },
    { ...account, kind: 'available', amount: held - fee },
  ])
}

/**
 * Makes the merged coin spendable, and stores its value as the amount of the transaction: with a higher
 * fee, a replacement returns less.
 * @returns the amount, in the smallest unit
 */
async function noteCoin(tx: Queryable, row: Row): Promise<string> {
  await freeChange(tx, row, row.hash ?? undefined)
  const written = await tx.one<{ amount: string }>(
    `update transactions t set amount = u.value from utxos u
     where t.workspace_id = $1 and t.id = $2 and u.workspace_id = $1 and u.network = $3
       and u.txid = $4 and u.origin = 'change' returning t.amount::text`,
    [row.workspace_id, row.id, row.network, row.hash],
  )
  return written?.amount ?? row.amount
}
