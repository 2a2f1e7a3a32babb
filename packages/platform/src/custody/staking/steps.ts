import { tron as tronBuild, type TronAction, type TronResource } from '@custody/chains'
import type { AccountKind, Posting } from '../../core/ledger/post.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'

export type StakingKind = 'STAKE' | 'UNSTAKE' | 'RELEASE'
export type StakingStep = TronAction['kind']

const STEPS: Record<StakingKind, { own: readonly StakingStep[]; other: readonly StakingStep[] }> = {
  STAKE: { own: ['freeze'], other: ['freeze', 'delegate'] },
  UNSTAKE: { own: ['unfreeze'], other: ['undelegate', 'unfreeze'] },
  RELEASE: { own: ['withdraw'], other: ['withdraw'] },
}

/**
 * Returns the consecutive chain transactions of a kind.
 * @param own whether the resource is for the wallet's own account
 */
export const stepsOf = (kind: StakingKind, own: boolean): readonly StakingStep[] =>
  STEPS[kind][own ? 'own' : 'other']

/**
 * Returns the cost of the steps' bandwidth in sun if neither free nor staked bandwidth covers it.
 */
export const feeOf = (steps: readonly StakingStep[], bandwidthSun: bigint): bigint =>
  steps.reduce((sum, step) => sum + tronBuild.actionBandwidth(step), 0n) * bandwidthSun

/** The calls to the chain that a stake, an unstake or a release makes, and their parameters. */
export interface Staking {
  kind: StakingKind
  /** The account that signs and that owns the TRX. */
  account: string
  /** The address that has the resource. */
  address: string
  resource: TronResource | null
  amount: bigint
  steps: readonly StakingStep[]
  /** Index of the current step. */
  at: number
}

const KINDS: ReadonlySet<string> = new Set(Object.keys(STEPS))

export const isStaking = (row: Pick<TransactionRow, 'kind'>): boolean => KINDS.has(row.kind)

/**
 * Returns the staking operation of a row.
 * @throws for a row of another kind
 */
export function stakingOf(row: TransactionRow): Staking {
  if (!isStaking(row)) throw new Error(`a transaction of the kind ${row.kind} is not staking`)
  const [account, address] = [row.source_id as string, row.destination_id as string]
  const kind = row.kind as StakingKind
  const resource = (row.plan.resource ?? null) as TronResource | null
  return {
    kind,
    account,
    address,
    resource,
    amount: BigInt(row.amount),
    steps: stepsOf(kind, account === address),
    at: Number(row.plan.step ?? '0'),
  }
}

/** Returns the call of the current step. */
export function actionOf({ steps, at, resource, amount, address }: Staking): TronAction {
  const kind = steps[at]
  if (kind === undefined) throw new Error('a staking transaction is past its last step')
  if (kind === 'withdraw') return { kind, resource: null, amount: 0n, receiver: null }
  return {
    kind,
    resource,
    amount,
    receiver: kind === 'delegate' || kind === 'undelegate' ? address : null,
  }
}

const ACCOUNTS: Record<TronResource, { staked: AccountKind; reserved: AccountKind }> = {
  ENERGY: { staked: 'staked_energy', reserved: 'staked_energy_reserved' },
  BANDWIDTH: { staked: 'staked_bandwidth', reserved: 'staked_bandwidth_reserved' },
}

/**
 * Returns the ledger account kinds of a resource's stake: `staked` is the current stake, `reserved`
 * was taken by a pending transaction.
 */
export function stakeAccounts(resource: TronResource | null): {
  staked: AccountKind
  reserved: AccountKind
} {
  if (resource === null) throw new Error('a stake has no resource')
  return ACCOUNTS[resource]
}

/**
 * Returns the accounts from which the TRX of a staking transaction is taken and to which it
 * returns: a wallet's, or those of the workspace's gas tank.
 */
export function poolsOf(row: TransactionRow): {
  scope: Pick<Posting, 'workspace' | 'wallet' | 'asset'>
  free: AccountKind
  held: AccountKind
} {
  const scope = { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset }
  return row.wallet_id === null
    ? { scope, free: 'tank', held: 'tank_reserved' }
    : { scope, free: 'available', held: 'reserved' }
}
