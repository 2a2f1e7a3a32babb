import {
  ChainError,
  parseAmount,
  traitsOf,
  validateAddress,
  type DecodedTransaction,
  type Registry,
} from '@custody/chains'
import { releaseBody, stakeBody } from '@custody/request-auth/bodies'
import { sha256hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import type { StakeAction } from './actions.ts'
import { badField, bodyOf } from './fields.ts'
import { sequenceKey } from './pay.ts'
import type { Proven } from './request.ts'

/** The chain's operation on a stake. */
export type StakeCall = NonNullable<DecodedTransaction['action']>

/** The caller's request for a stake, parsed. */
export interface StakeIntent {
  action: StakeAction['name']
  workspace: string
  sub_account: number
  asset: string
  /**
   * The address that receives the resource; for a release, the address that had it. A release
   * withdraws everything whose waiting period is over.
   */
  address: string
  /** Null and 0 for a release. */
  resource: StakeCall['resource']
  /** Smallest unit. */
  amount: bigint
  key: string
  content: string
}

export function stakeIntent(
  registry: Registry,
  proven: Proven,
  { name }: StakeAction,
): StakeIntent {
  const released = name === 'release'
  const body = released
    ? { ...bodyOf(proven, releaseBody), resource: null, amount: null }
    : bodyOf(proven, stakeBody)
  const ticker = body.asset
  const asset = registry.asset(ticker)
  if (!asset)
    throw new Refusal('UNKNOWN_ASSET', `The asset ${ticker} is not in this node's registry`)
  if (asset.type !== 'native' || !traitsOf(registry.networkOf(asset)).staking)
    throw badField('asset', `${ticker} cannot be staked`)
  const sequence = body.sequence_id ?? null
  const checked = validateAddress(registry, ticker, body.address)
  if (!checked.valid) throw badField('address', checked.reason)
  const { resource } = body
  let amount = 0n
  try {
    if (body.amount !== null) amount = parseAmount(body.amount, asset.decimals)
  } catch (error) {
    if (error instanceof ChainError) throw badField('amount', error.message)
    throw error
  }
  if (!released && amount <= 0n) throw badField('amount', 'must be greater than zero')
  const { workspace, sub_account } = proven.enrolment
  // A sequence_id identifies one intent in its wallet, whether a payment or a stake (rule 4).
  const key =
    sequence === null
      ? JSON.stringify([name, 'nonce', proven.enrolment.api_key, proven.nonce])
      : sequenceKey(workspace, sub_account, ticker, sequence)
  const meaning = {
    workspace,
    sub_account,
    asset: ticker,
    address: checked.address,
    resource,
    amount: amount.toString(),
  }
  return {
    action: name,
    ...meaning,
    resource,
    amount,
    key,
    content: sha256hex(JSON.stringify([key, name, meaning])),
  }
}
