import type { Database } from '../../core/database/pool.ts'

/**
 * Account kinds of a wallet that are owed to its sub-account, wherever on the chain the funds are.
 */
export const OWED = [
  'available',
  'reserved',
  'unswept',
  'frozen',
  'staked_energy',
  'staked_bandwidth',
  'staked_energy_reserved',
  'staked_bandwidth_reserved',
  'cooling',
] as const
/** Account kinds of a workspace that are owed, but to a sub-account that is not known yet. */
export const OWED_TO_NOBODY = ['suspense'] as const
/**
 * Account kinds of a workspace whose funds are on the chain but not owed. A gas tank's own stake
 * has the same kinds as a wallet's, but no wallet.
 */
export const OPERATING = ['tank', 'tank_reserved', 'float', 'float_reserved'] as const
/**
 * Account kinds without coins of ours: the external side of each entry, USD paid in for fees, claims on
 * exchanges, which owe them, and what was written off.
 */
export const ELSEWHERE = [
  'chain',
  'fees',
  'prepaid',
  'prepaid_reserved',
  'venue',
  'venue_outside',
  'venue_fees',
  'written_off',
] as const

/**
 * Amount of one asset that is owed to one sub-account, or to a workspace's suspense. Smallest unit;
 * below zero only after a reorganisation.
 */
export interface Liability {
  asset: string
  workspace: string
  subAccountId: string | null
  subAccount: string | null
  balance: bigint
}

/** State of the ledger at one moment, by asset, in the smallest unit. */
export interface Books {
  liabilities: Liability[]
  operating: ReadonlyMap<string, bigint>
  arriving: ReadonlyMap<string, bigint>
  leaving: ReadonlyMap<string, bigint>
}

interface Sum {
  asset: string
  sum: string
}

/**
 * Reads everything from one snapshot of the database, so that nothing is counted twice because it
 * moved between queries.
 */
export function readBooks(database: Database): Promise<Books> {
  return database.transaction(async (tx) => {
    await tx.query('set transaction isolation level repeatable read, read only')
    const sums = async (text: string, values: unknown[] = []) =>
      new Map((await tx.query<Sum>(text, values)).map(({ asset, sum }) => [asset, BigInt(sum)]))
    // All wallets are read, including empty ones, so that their owners see that they were counted.
    const wallets = await tx.query<{
      asset: string
      workspace: string
      id: string
      name: string
      sum: string
    }>(
      `select w.asset, k.name workspace, s.id, s.name, coalesce(sum(a.balance), 0)::text sum
       from wallets w join sub_accounts s on s.id = w.sub_account_id
         join workspaces k on k.id = s.workspace_id
       left join ledger_accounts a on a.workspace_id = w.workspace_id and a.wallet_id = w.id
         and a.asset = w.asset and a.kind = any($1)
       group by w.asset, k.name, s.id, s.name`,
      [OWED],
    )
    const unknown = await tx.query<{ asset: string; workspace: string; sum: string }>(
      `select a.asset, k.name workspace, sum(a.balance)::text sum from ledger_accounts a
        join workspaces k on k.id = a.workspace_id
       where a.kind = any($1) group by a.asset, k.name having sum(a.balance) <> 0`,
      [OWED_TO_NOBODY],
    )
    const operating = await sums(
      `select asset, sum(balance)::text sum from ledger_accounts where kind = any($1)
        or (kind = any($2) and wallet_id is null)
       group by asset`,
      [OPERATING, OWED],
    )
    const arriving = await sums(
      `select t.asset, sum(t.amount)::text sum from transactions t
       join deposits d on d.workspace_id = t.workspace_id and d.transaction_id = t.id
       where t.state in ('CONFIRMING', 'SCREENING') and not t.plan ? 'frozen_wallet'
         and t.kind in ('DEPOSIT', 'TANK_DEPOSIT')
         and d.block_height is not null group by t.asset`,
    )
    const leaving = await sums(
      `select asset, sum(amount)::text sum from transactions where kind in ('WITHDRAWAL', 'DRAIN')
         and state in ('BROADCASTING', 'CONFIRMING', 'REPLACING') group by asset`,
    )
    return {
      liabilities: [
        ...wallets.map(({ id, name, sum, ...row }) => ({
          ...row,
          subAccountId: id,
          subAccount: name,
          balance: BigInt(sum),
        })),
        ...unknown.map(({ sum, ...row }) => ({
          ...row,
          subAccountId: null,
          subAccount: null,
          balance: BigInt(sum),
        })),
      ],
      operating,
      arriving,
      leaving,
    }
  })
}
