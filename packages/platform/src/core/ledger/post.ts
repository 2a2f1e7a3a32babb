import type { EventType } from '../database/event-types.ts'
import type { Queryable } from '../database/pool.ts'

export type AccountKind =
  | 'available'
  | 'reserved'
  | 'unswept'
  | 'frozen'
  | 'suspense'
  | 'chain'
  | 'tank'
  | 'tank_reserved'
  | 'float'
  | 'float_reserved'
  | 'prepaid'
  | 'prepaid_reserved'
  | 'fees'
  | 'venue'
  | 'venue_outside'
  | 'venue_fees'
  | 'staked_energy'
  | 'staked_bandwidth'
  | 'staked_energy_reserved'
  | 'staked_bandwidth_reserved'
  | 'cooling'
  | 'written_off'

/**
 * One posting of an entry; all postings of an entry belong to one workspace. Amounts in the asset's
 * smallest unit; a positive amount increases the account.
 */
export interface Posting {
  workspace: string
  wallet?: string | null
  asset: string
  kind: AccountKind
  address?: string | null
  amount: bigint
}

/**
 * Posts an entry once. If the same (kind, reference) was posted before, it does nothing and returns
 * false.
 * @throws a database error with code 23514 if an account would fall below zero
 */
export async function post(
  tx: Queryable,
  kind: string,
  reference: string,
  postings: readonly Posting[],
  options: { overdraw?: boolean } = {},
): Promise<boolean> {
  const workspace = postings[0]?.workspace
  // For an exchange account that held nothing there is nothing to post.
  if (workspace === undefined) return true
  if (postings.some((each) => each.workspace !== workspace))
    throw new Error(`the entry ${kind} ${reference} has postings of two workspaces`)
  const rows = postings
    .filter((each) => each.amount !== 0n)
    .map(({ wallet, asset, kind: of, address, amount }) => ({
      wallet: wallet ?? null,
      asset,
      kind: of,
      address: address ?? null,
      amount: amount.toString(),
    }))
  const answer = await tx.one<{ done: boolean }>('select ledger_post($1, $2, $3, $4, $5) done', [
    workspace,
    kind,
    reference,
    JSON.stringify(rows),
    options.overdraw ?? false,
  ])
  return answer?.done ?? false
}

/** Returns an account's balance and locks its row until the transaction ends. */
export async function lockedBalance(
  tx: Queryable,
  account: Omit<Posting, 'amount'>,
): Promise<bigint> {
  const row = await tx.one<{ balance: string }>(
    // The function is called in a subquery, because it would otherwise be called for every row of
    // the table.
    `select balance::text from ledger_accounts where workspace_id = $1
      and id = (select ledger_account($1, $2, $3, $4, $5)) for update`,
    [
      account.workspace,
      account.wallet ?? null,
      account.asset,
      account.kind,
      account.address ?? null,
    ],
  )
  return BigInt(row?.balance ?? '0')
}

/**
 * Adds an event to the outbox, in the database transaction of the change. Must be called after the
 * object's row is locked, so that the events of one object have the order of its changes.
 * @param subAccount null: the event concerns the whole workspace
 * @param payload JSON text, in the shape that the event registry defines
 */
export async function emit(
  tx: Queryable,
  workspace: string,
  subAccount: string | null,
  type: EventType,
  payload: string,
): Promise<void> {
  await tx.query('select emit_event($1, $2, $3, $4)', [workspace, subAccount, type, payload])
  tx.emit({ type, workspace, payload })
}
