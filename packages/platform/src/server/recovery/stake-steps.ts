import type { TronAction, TronResource } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'
import { post, type Posting } from '../../core/ledger/post.ts'
import { poolsOf, stakeAccounts, type StakingStep } from '../../custody/staking/steps.ts'
import type { TransactionKind, TransactionRow } from '../../core/engine/transaction.ts'
import { NotAdopted, type Opened } from './open.ts'

const FIRST: Record<StakingStep, TransactionKind> = {
  freeze: 'STAKE',
  delegate: 'STAKE',
  undelegate: 'UNSTAKE',
  unfreeze: 'UNSTAKE',
  withdraw: 'RELEASE',
}
/** Order of the calls of a stake or an unstake. */
const ORDER: readonly StakingStep[] = ['freeze', 'delegate', 'undelegate', 'unfreeze', 'withdraw']

const actionIn = ({ decoded }: Opened): TronAction => {
  if (!decoded.action) throw new NotAdopted('it stakes nothing')
  return decoded.action
}
const place = (each: Opened): number => ORDER.indexOf(actionIn(each).kind)

/**
 * Returns the staking transaction that consists of these calls: the first call determines the kind,
 * the receiver determines the account.
 */
export function stakesOf(attempts: [Opened, ...Opened[]]): {
  kind: TransactionKind
  attempts: [Opened, ...Opened[]]
  amount: bigint
  to: string
  resource: TronResource | null
} {
  const ordered = attempts.toSorted((a, b) => place(a) - place(b)) as [Opened, ...Opened[]]
  const actions = ordered.map(actionIn)
  const { kind, amount, resource } = actions[0] as TronAction
  if (
    actions.some(
      (each) =>
        FIRST[each.kind] !== FIRST[kind] || each.amount !== amount || each.resource !== resource,
    )
  )
    throw new NotAdopted('its calls do not match each other')
  const receiver = actions.find((each) => each.receiver !== null)?.receiver
  return {
    kind: FIRST[kind],
    attempts: ordered,
    amount,
    resource,
    to: receiver ?? (ordered[0].decoded.from[0] as string),
  }
}

/** Returns the loan of the tank's energy, or its return. */
export function loanIn(opened: Opened): {
  kind: TransactionKind
  amount: bigint
  to: string
  resource: TronResource | null
} {
  const { kind, amount, receiver, resource } = actionIn(opened)
  if (receiver === null || (kind !== 'delegate' && kind !== 'undelegate'))
    throw new NotAdopted('it lends nothing')
  return { kind: kind === 'delegate' ? 'LEND' : 'LEND_BACK', amount, to: receiver, resource }
}

/** Posts the reservations that a stake, an unstake or a loan has once it is signed. */
export async function reserveStake(tx: Queryable, row: TransactionRow, fee: bigint): Promise<void> {
  const amount = BigInt(row.amount)
  const isTank = row.wallet_id === null
  const { scope, free, held } = poolsOf(row)
  const moved = row.kind === 'STAKE' ? amount : 0n
  const taken = moved + (isTank ? fee : 0n)
  const isLoan = row.kind === 'LEND' || row.kind === 'LEND_BACK'
  const postings: Posting[] = [
    { ...scope, kind: free, amount: -taken },
    { ...scope, kind: held, amount: taken },
  ]
  if (row.kind === 'UNSTAKE' || row.kind === 'LEND') {
    const { staked, reserved } = stakeAccounts((row.plan.resource ?? null) as TronResource | null)
    const address = row.kind === 'LEND' ? row.source_id : row.destination_id
    postings.push(
      { ...scope, kind: staked, address, amount: -amount },
      { ...scope, kind: reserved, address, amount },
    )
  }
  await post(
    tx,
    isLoan ? 'loan-reserve' : isTank ? 'tank-stake-reserve' : 'reserve',
    row.id,
    postings,
    { overdraw: true },
  )
}

/**
 * Finds the known loan that a recorded return ends. The return uses the fee that was reserved for
 * it, and no second return is made.
 */
export async function returnedLoan(
  tx: Queryable,
  workspace: string,
  network: string,
  of: { from: string; to: string; amount: bigint },
): Promise<{ parentId: string | null; fee: string } | null> {
  const loan = await tx.one<TransactionRow>(
    `select * from transactions where workspace_id = $5 and kind = 'LEND' and network = $1
       and source_id = $2
       and destination_id = $3 and amount = $4
       and status <> 'failed'
       and not plan ? 'adopted' and not plan ? 'ended' order by created_at limit 1 for update`,
    [network, of.from, of.to, of.amount.toString(), workspace],
  )
  if (!loan) return null
  await tx.query(
    `update transactions set plan = plan || '{"ended":"recorded"}' where workspace_id = $2
      and id = $1`,
    [loan.id, workspace],
  )
  return { parentId: loan.parent_id, fee: String(loan.plan.back_fee ?? '0') }
}
