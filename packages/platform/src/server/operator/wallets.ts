import { emit } from '../../core/ledger/post.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Logger } from 'pino'
import { OPERATOR, writeAudit } from '../../console-api/people/audit-log.ts'
import { argument, OperatorError, type Command } from './command.ts'

interface Services {
  environment: Environment
  database: Database
  log: Logger
}

const STATUSES = ['active', 'inactive']
const REASON_MAX = 500

interface WalletRow {
  id: string
  workspace_id: string
  sub_account_id: string
  workspace: string
  sub_account: string
  asset: string
  network: string
  status: string
}

const FOUND = `select x.id, x.workspace_id, x.sub_account_id, w.name workspace, s.name sub_account,
  x.asset, x.network, x.status
  from wallets x join workspaces w on w.id = x.workspace_id
    join sub_accounts s on s.id = x.sub_account_id`

/** Returns a wallet by its ID, or by workspace, sub-account and asset. */
export async function findOne(
  services: Pick<Services, 'database'>,
  input: Record<string, unknown>,
): Promise<WalletRow> {
  const [id, workspace, subAccount, asset] = [
    argument(input, 'id'),
    argument(input, 'workspace'),
    argument(input, 'sub_account'),
    argument(input, 'asset'),
  ]
  if (id === null && (workspace === null || subAccount === null || asset === null))
    throw new OperatorError('either --id, or --workspace, --sub-account and --asset are required')
  const match = await services.database.one<WalletRow>(
    `${FOUND} where ($1::text is null or x.id::text = lower($1)) and ($2::text is null or w.name = $2) and ($3::text is null or s.name = $3)
       and ($4::text is null or x.asset = $4)`,
    [id, workspace, subAccount, asset],
  )
  if (!match)
    throw new OperatorError(
      id === null
        ? `${workspace} / ${subAccount} has no ${asset} wallet`
        : `--id: wallet ${id} does not exist; "custody wallet list" lists all wallets`,
    )
  return match
}

/**
 * Makes a wallet inactive or active again. An inactive wallet accepts no new addresses and no new
 * transfers, stakes or forwards; deposits are credited, and operations in progress continue. Each
 * change is recorded permanently.
 */
export const setWallet: Command<Services> = async (services, input) => {
  const status = argument(input, 'status')
  if (status === null || !STATUSES.includes(status))
    throw new OperatorError(`--status: must be ${STATUSES.join(' or ')}`)
  const reason = argument(input, 'reason')
  if (reason !== null && (reason.length > REASON_MAX || reason.includes('\0')))
    throw new OperatorError(`--reason: must have at most ${REASON_MAX} characters`)
  const {
    workspace_id: workspaceId,
    sub_account_id: subAccountId,
    ...wallet
  } = await findOne(services, input)
  const at = new Date(services.environment.now())
  const changed = await services.database.transaction(async (tx) => {
    const written = await tx.query(
      `update wallets set status = $2 where workspace_id = $3 and id = $1 and status <> $2
        returning 1`,
      [wallet.id, status, workspaceId],
    )
    if (written.length === 0) return false
    await tx.query(
      `insert into wallet_status_changes (wallet_id, status, reason, changed_at, workspace_id)
        values ($1, $2, $3, $4, $5)`,
      [wallet.id, status, reason, at, workspaceId],
    )
    await emit(
      tx,
      workspaceId,
      subAccountId,
      'wallet.updated',
      JSON.stringify({ id: wallet.id, asset: wallet.asset, status, updated_at: at.toISOString() }),
    )
    // Rules that wait for the wallet are evaluated again.
    if (status === 'active')
      await tx.query(
        `update forward_rules set next_run_at = $2 where workspace_id = $3 and wallet_id = $1
          and state = 'ACTIVE'`,
        [wallet.id, at, workspaceId],
      )
    await writeAudit(tx, workspaceId, OPERATOR, {
      action: `wallet.${status === 'active' ? 'activated' : 'deactivated'}`,
      object: wallet.id,
      details: { asset: wallet.asset, sub_account: wallet.sub_account, reason },
    })
    return true
  })
  if (changed)
    services.log.warn(
      { wallet: wallet.id, asset: wallet.asset, status, reason },
      'the operator changed the status of a wallet',
    )
  return { ...wallet, status, changed }
}

/** Lists wallets, each with the operator's changes of its status. */
export const listWallets: Command<Pick<Services, 'database'>> = async (services, input) => {
  const rows = await services.database.query<
    WalletRow & { changes: { status: string; reason: string | null; changed_at: string }[] }
  >(
    `select f.id, f.workspace, f.sub_account, f.asset, f.network, f.status,
       coalesce((select jsonb_agg(jsonb_build_object('status', c.status, 'reason', c.reason,
         'changed_at', c.changed_at) order by c.id)
         from wallet_status_changes c where c.workspace_id = f.workspace_id and c.wallet_id = f.id),
           '[]') changes
     from (${FOUND}) f where $1::text is null or f.workspace = $1 order by f.workspace,
       f.sub_account, f.asset limit 10000`,
    [argument(input, 'workspace')],
  )
  return { wallets: rows }
}
