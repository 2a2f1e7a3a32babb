import { formatAmount, type Registry } from '@custody/chains'
import type { Logger } from 'pino'
import { OPERATOR, writeAudit } from '../../../console-api/people/audit-log.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Environment } from '../../../core/environment.ts'
import { writeOff } from '../../../core/ledger/written-off.ts'
import { assertUncontradicted, Contradicted } from '../../../custody/deposits/contradiction.ts'
import { argument, OperatorError, type Command } from '../command.ts'
import { findOne } from '../wallets.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  log: Logger
}

const COMMENT_MAX = 500

/**
 * Writes off what a wallet is below zero since a reorganisation, so that it can pay again. The coins stay
 * missing: the operator has to pay them in.
 */
export const writeOffWallet: Command<Services> = async (services, input) => {
  const comment = argument(input, 'comment')?.trim() ?? ''
  if (comment === '' || comment.length > COMMENT_MAX || comment.includes('\0'))
    throw new OperatorError(`--comment: must have 1 to ${COMMENT_MAX} characters`)
  const wallet = await findOne(services, input)
  const { id, workspace_id: workspace, network, asset } = wallet
  const decimals = services.registry.asset(asset)?.decimals ?? 0
  const amount = await services.database
    .transaction(async (tx) => {
      await assertUncontradicted(tx, network)
      const waiting = await tx.one<{ count: number }>(
        `select count(*)::integer count from transactions where workspace_id = $1 and wallet_id = $2
         and status = 'pending' and (plan->>'generation')::integer > 0`,
        [workspace, id],
      )
      if (waiting && waiting.count > 0)
        throw new OperatorError(
          `${waiting.count} transactions of the wallet wait for another block since a reorganisation, and may give amounts back: wait for their end`,
        )
      const written = await writeOff(
        tx,
        { workspace_id: workspace, wallet_id: id, asset },
        services.environment.uuid(),
      )
      if (written === 0n) throw new OperatorError('the balance of the wallet is not below zero')
      await writeAudit(tx, workspace, OPERATOR, {
        action: 'wallet.written_off',
        object: id,
        details: { asset, amount: formatAmount(written, decimals), comment },
      })
      return written
    })
    .catch((error: unknown) => {
      if (!(error instanceof Contradicted)) throw error
      throw new OperatorError(`nothing can be written off now: ${error.message}`)
    })
  services.log.warn(
    { wallet: id, asset, amount: amount.toString() },
    'the operator wrote off what a wallet was below zero',
  )
  const { workspace: name, sub_account } = wallet
  return { id, workspace: name, sub_account, asset, written_off: formatAmount(amount, decimals) }
}
