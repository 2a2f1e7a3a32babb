import type { Environment } from '../../../core/environment.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Invoices } from '../../../core/engine/interfaces/listeners.ts'
import { formatAmount, type Registry } from '@custody/chains'
import { isSuspended } from '../../../custody/deposits/credit.ts'
import { leaveSuspense } from '../../../custody/deposits/waiting.ts'
import type { TransactionRow } from '../../../core/engine/transaction.ts'
import { OPERATOR, writeAudit } from '../../../console-api/people/audit-log.ts'
import { OperatorError, type Command } from '../command.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  invoices: Invoices
}

/**
 * Lists deposits that belong to no wallet, because their tag was never issued or their wallet does
 * not exist yet. Oldest first.
 */
export const listSuspense: Command<Pick<Services, 'database' | 'registry'>> = async (services) => {
  const rows = await services.database.query<{
    id: string
    workspace: string
    sub_account: string | null
    asset: string
    amount: string
    destination_id: string
    address_tag: string | null
    source_id: string | null
    hash: string
    created_at: Date
  }>(
    `select t.id, w.name workspace, s.name sub_account, t.asset, t.amount::text, t.destination_id,
      t.address_tag, t.source_id,
      t.hash, t.created_at
     from transactions t join workspaces w on w.id = t.workspace_id
       left join sub_accounts s on s.id = t.sub_account_id
     where t.kind = 'DEPOSIT' and t.state = 'SUSPENSE' order by t.created_at limit 1000`,
  )
  return {
    suspense: rows.map(
      ({ amount, destination_id: address, source_id: sender, created_at, ...row }) => ({
        ...row,
        address,
        sender,
        amount: formatAmount(BigInt(amount), services.registry.asset(row.asset)?.decimals ?? 0),
        created_at: created_at.toISOString(),
      }),
    ),
  }
}

/**
 * Credits a deposit in suspense to a wallet of the account that received its coins. The operator
 * has to find out for which tag it was intended.
 */
export const assignSuspense: Command<Services> = async (services, input) =>
  services.database.transaction(async (tx) => {
    const row = await tx.one<TransactionRow & { address_kind: string }>(
      `select t.*, c.kind address_kind from transactions t
        join chain_addresses c on c.workspace_id = t.workspace_id and c.network = t.network
      and c.address = t.destination_id where t.id::text = $1 and t.kind = 'DEPOSIT' for update of t`,
      [String(input['id'] ?? '')],
    )
    if (!row)
      throw new OperatorError(
        `--id: deposit ${String(input['id'] ?? '')} does not exist; "custody suspense list" lists the waiting deposits`,
      )
    if (!isSuspended(row))
      throw new OperatorError(`--id: the deposit is not in suspense; its state is ${row.state}`)
    const wallet = await tx.one<{ id: string }>(
      'select id from wallets where workspace_id = $3 and sub_account_id = $1 and asset = $2',
      [row.sub_account_id, row.asset, row.workspace_id],
    )
    if (!wallet) {
      throw new OperatorError(
        `the sub-account of the address has no ${row.asset} wallet yet; a deposit without a tag is credited when the wallet is created`,
      )
    }
    await leaveSuspense(services, tx, row, wallet.id, row.address_kind)
    await writeAudit(tx, row.workspace_id, OPERATOR, {
      action: 'suspense.assigned',
      object: row.id,
      details: { asset: row.asset, amount: row.amount, wallet: wallet.id },
    })
    return {
      id: row.id,
      asset: row.asset,
      amount: formatAmount(BigInt(row.amount), services.registry.asset(row.asset)?.decimals ?? 0),
      wallet_id: wallet.id,
    }
  })
