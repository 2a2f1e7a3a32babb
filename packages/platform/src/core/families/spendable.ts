import type { Asset } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import type { Owner } from '../engine/chain.ts'

/**
 * Returns the spendable balance of a sub-account's wallet; null if it is zero or there is no
 * wallet.
 */
export async function spendableOf(
  database: Queryable,
  { workspaceId, subAccountId }: Owner,
  { asset_name: asset }: Asset,
): Promise<bigint | null> {
  const wallet = await database.one<{ balance: string }>(
    `select a.balance::text from wallets w
       join ledger_accounts a on a.workspace_id = w.workspace_id and a.wallet_id = w.id
         and a.asset = w.asset and a.kind = 'available'
     where w.workspace_id = $3 and w.sub_account_id = $1 and w.asset = $2 and a.balance > 0`,
    [subAccountId, asset, workspaceId],
  )
  return wallet ? BigInt(wallet.balance) : null
}
