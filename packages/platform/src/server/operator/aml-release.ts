import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Logger } from 'pino'
import { stringifyJson } from '@custody/request-auth'
import { lockFreezing } from '../../custody/aml/frozen.ts'
import { emit } from '../../core/ledger/post.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { OPERATOR, writeAudit } from '../../console-api/people/audit-log.ts'
import { OperatorError, type Command } from './command.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  log: Logger
}

/**
 * Releases one deposit some of whose senders are unknown. The known senders are still screened, and
 * a deposit that a reorganisation includes again is held again.
 */
export const releaseDeposit: Command<Services> = async (services, input) => {
  const id = String(input['transaction'] ?? '')
  const match = await services.database.one<{
    workspace_id: string
    sub_account_id: string | null
  }>(
    `select workspace_id, sub_account_id from transactions where id::text = $1 and kind = 'DEPOSIT'`,
    [id],
  )
  if (!match)
    throw new OperatorError(
      `--transaction: deposit ${id === '' ? 'without an id' : id} does not exist; its id is in GET /dac/v1/transactions`,
    )
  return services.database.transaction(async (tx) => {
    await lockFreezing(tx, String(match.sub_account_id))
    const row = (await tx.one<TransactionRow>(
      'select * from transactions where workspace_id = $2 and id = $1 for update',
      [id, match.workspace_id],
    )) as TransactionRow
    const result = { transaction: row.id, asset: row.asset, hash: row.hash }
    const before = row.plan.senders_released
    if (before) return { ...result, released_at: before, again: true }
    if (row.status !== 'pending' || row.plan.unknown_sender !== '1')
      throw new OperatorError(
        `--transaction: the deposit is not held for an unknown sender; its state is ${row.state}`,
      )
    const at = new Date(services.environment.now())
    await tx.query(
      `update transactions set plan = plan || $2::jsonb, next_run_at = $3, updated_at = $3
        where workspace_id = $4 and id = $1`,
      [row.id, JSON.stringify({ senders_released: at.toISOString() }), at, row.workspace_id],
    )
    await emit(
      tx,
      row.workspace_id,
      row.sub_account_id,
      'deposit.released',
      stringifyJson(presentTransaction(row, services.registry)),
    )
    await writeAudit(tx, row.workspace_id, OPERATOR, {
      action: 'deposit.released',
      object: row.id,
      details: { asset: row.asset, amount: row.amount },
    })
    services.log.warn(
      { transaction: row.id, hash: row.hash, asset: row.asset, amount: row.amount },
      'the operator released a deposit whose senders are not all known',
    )
    return { ...result, released_at: at.toISOString() }
  })
}
