import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { emit, post } from '../../core/ledger/post.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Invoices } from '../../core/engine/interfaces/listeners.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { WalletOwner, WalletRow } from '../assets/find-wallet.ts'
import { isSuspended } from './credit.ts'
import { queueSweep } from './sweeps.ts'

interface Services {
  environment: Environment
  registry: Registry
  invoices: Invoices
}

/**
 * Moves coins that arrived before the wallet of their asset existed from suspense to the new
 * wallet.
 */
export async function creditWaitingDeposits(
  services: Services,
  tx: Queryable,
  owner: WalletOwner,
  wallet: WalletRow,
): Promise<void> {
  const rows = await tx.query<TransactionRow & { address_kind: string }>(
    `select t.*, c.kind address_kind from transactions t
       join chain_addresses c on c.workspace_id = t.workspace_id and c.network = t.network
         and c.address = t.destination_id
     where t.workspace_id = $3 and t.kind = 'DEPOSIT' and t.sub_account_id = $1 and t.asset = $2
       and t.wallet_id is null
       and t.address_tag is null for update of t`,
    [owner.subAccountId, wallet.asset, owner.workspaceId],
  )
  for (const row of rows) {
    await tx.query('update transactions set wallet_id = $2 where workspace_id = $3 and id = $1', [
      row.id,
      wallet.id,
      row.workspace_id,
    ])
    if (isSuspended(row)) await leaveSuspense(services, tx, row, wallet.id, row.address_kind)
  }
}

/** Assigns a deposit in suspense to a wallet and credits it there. */
export async function leaveSuspense(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  walletId: string,
  addressKind: string,
): Promise<void> {
  const scope = { workspace: row.workspace_id, asset: row.asset }
  const amount = BigInt(row.amount)
  const unswept = addressKind === 'deposit'
  await post(tx, 'deposit-assigned', row.id, [
    { ...scope, kind: 'suspense', address: row.destination_id, amount: -amount },
    {
      ...scope,
      wallet: walletId,
      kind: unswept ? 'unswept' : 'available',
      address: unswept ? row.destination_id : null,
      amount,
    },
  ])
  const end = {
    wallet_id: walletId,
    state: 'CREDITED' as const,
    status: 'confirmed' as const,
    confirmed_at: new Date(services.environment.now()),
  }
  await tx.query(
    `update transactions set wallet_id = $2, state = $3, status = $4, confirmed_at = $5,
      updated_at = $6
     where workspace_id = $7 and id = $1`,
    [row.id, walletId, end.state, end.status, end.confirmed_at, tx.now(), row.workspace_id],
  )
  await emit(
    tx,
    row.workspace_id,
    row.sub_account_id,
    'deposit.confirmed',
    stringifyJson(presentTransaction({ ...row, ...end }, services.registry)),
  )
  if (unswept)
    await queueSweep(services, tx, { ...row, wallet_id: walletId, source_id: row.destination_id })
  await services.invoices.moved(tx, row)
}
