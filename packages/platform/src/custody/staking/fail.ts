import type { Queryable } from '../../core/database/pool.ts'
import { post } from '../../core/ledger/post.ts'
import { settlementReference } from '../../core/engine/settlement.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { poolsOf, stakeAccounts, type Staking } from './steps.ts'

/**
 * Books the result of a stake, unstake or release that ends before its last step, and releases the
 * rest.
 */
export async function giveBackStake(
  tx: Queryable,
  row: TransactionRow,
  { kind, account, address, resource, amount, at }: Staking,
): Promise<void> {
  if (kind === 'RELEASE') {
    await tx.query(
      `update cooldowns set releasing_by = null where workspace_id = $2 and releasing_by = $1
        and released_by is null`,
      [row.id, row.workspace_id],
    )
    return
  }
  const { scope, free, held } = poolsOf(row)
  const { staked, reserved } = stakeAccounts(resource)
  // Between two steps of a stake or an unstake, the TRX is staked for the wallet's own address.
  const holder = kind === 'UNSTAKE' && at === 0 ? address : account
  await post(
    tx,
    'release',
    settlementReference(row),
    kind === 'STAKE' && at === 0
      ? [
          { ...scope, kind: held, amount: -amount },
          { ...scope, kind: free, amount },
        ]
      : [
          { ...scope, kind: reserved, address: holder, amount: -amount },
          { ...scope, kind: staked, address: holder, amount },
        ],
  )
}

/** Describes for the caller what happened to the TRX. */
export function leftOver({ kind, account, resource, at }: Staking): string {
  if (kind === 'RELEASE') return 'nothing was released; send a new request'
  if (at === 0) {
    return kind === 'STAKE'
      ? 'the amount was released, and nothing is staked; request a new stake'
      : 'the stake is unchanged; request a new unstake'
  }
  const stands = `the TRX is staked for ${resource} on the wallet's own address ${account}`
  return kind === 'STAKE'
    ? `${stands} and is not delegated; unstake it from there, or leave it and create a new stake for the other address`
    : `the delegation was ended and ${stands}; unstake it from there`
}
