import { formatAmount, type Registry } from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { emit } from '../../core/ledger/post.ts'
import { postSettled } from '../../core/engine/settlement.ts'
import { exact } from '../../core/decimals.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { poolsOf } from './steps.ts'

interface Services {
  registry: Registry
}

interface Cooldown {
  transaction_id: string
  address: string
  amount: string
}

/**
 * Books the TRX that the chain released from the cooldown: always the oldest entries, up to the
 * amount that the chain reports. Returns that amount.
 * @throws if no sequence of our own entries adds up to it: an earlier unstake is not booked yet,
 *   and this one waits for it
 */
export async function release(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  withdrawn: bigint,
): Promise<bigint> {
  const waiting = await tx.query<Cooldown>(
    `select transaction_id, address, amount::text from cooldowns
     where workspace_id = $4 and network = $3 and account = $1 and released_by is null
      and transaction_id <> $2 order by release_at, transaction_id for update`,
    [row.source_id, row.id, row.network, row.workspace_id],
  )
  const released: Cooldown[] = []
  let sum = 0n
  for (const each of waiting) {
    if (sum >= withdrawn) break
    released.push(each)
    sum += BigInt(each.amount)
  }
  if (sum !== withdrawn)
    throw new Error(
      `the chain has released ${withdrawn} sun, but the oldest recorded cooldowns amount to ${sum}`,
    )
  const { scope, free } = poolsOf(row)
  await postSettled(tx, row, 'staking-release', [
    ...released.map(({ address, amount }) => ({
      ...scope,
      kind: 'cooling' as const,
      address,
      amount: -BigInt(amount),
    })),
    { ...scope, kind: free, amount: withdrawn },
  ])
  await tx.query(
    'update cooldowns set released_by = $2 where workspace_id = $3 and transaction_id = any($1)',
    [released.map(({ transaction_id }) => transaction_id), row.id, row.workspace_id],
  )
  await tx.query(
    `update cooldowns set releasing_by = null where workspace_id = $2 and released_by is null
      and releasing_by = $1`,
    [row.id, row.workspace_id],
  )
  if (row.kind === 'RELEASE') return withdrawn
  const decimals = services.registry.asset(row.asset)?.decimals ?? 6
  for (const { address, amount } of released) {
    await emit(
      tx,
      row.workspace_id,
      row.sub_account_id,
      'staking.released',
      stringifyJson({
        id: row.id,
        asset: row.asset,
        address,
        amount: exact(formatAmount(BigInt(amount), decimals)),
        hash: row.hash,
      }),
    )
  }
  return withdrawn
}
