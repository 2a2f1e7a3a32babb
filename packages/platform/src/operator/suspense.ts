import { formatAmount } from '@custody/chains'
import type { Command } from './command.ts'

/** Deposits that belong to no wallet: their tag was never handed out, or their wallet does not exist yet. Oldest first. */
export const listSuspense: Command = async (services) => {
  const rows = await services.database.query<{ id: string; workspace: string; sub_account: string | null; asset: string; amount: string; destination_id: string; address_tag: string | null; source_id: string | null; hash: string; created_at: Date }>(
    `select t.id, w.name workspace, s.name sub_account, t.asset, t.amount::text, t.destination_id, t.address_tag, t.source_id, t.hash, t.created_at
     from transactions t join workspaces w on w.id = t.workspace_id left join sub_accounts s on s.id = t.sub_account_id
     where t.kind = 'DEPOSIT' and t.state = 'SUSPENSE' order by t.created_at limit 1000`)
  return {
    suspense: rows.map(({ amount, destination_id: address, source_id: sender, created_at, ...row }) => ({
      ...row, address, sender, amount: formatAmount(BigInt(amount), services.registry.asset(row.asset)?.decimals ?? 0), created_at: created_at.toISOString(),
    })),
  }
}
