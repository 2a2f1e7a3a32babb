import { ChainError, parseAmount, validateAddress, type Registry, type TronResource } from '@custody/chains'
import { sha256hex } from '../canonical.ts'
import { Refusal } from '../errors.ts'
import type { StakeAction } from './actions.ts'
import { badField, fieldsOf } from './fields.ts'
import { sequenceKey } from './pay.ts'
import type { Proven } from './request.ts'

/** What the caller wants of Tron's Stake 2.0, typed. */
export interface StakeIntent {
  action: StakeAction['name']
  workspace: string
  sub_account: number
  asset: string
  /** Who has the resource; a release names whose stake it was, and takes back all that has matured. */
  address: string
  /** Null and 0 for a release. */
  resource: TronResource | null
  /** Sun. */
  amount: bigint
  key: string
  content: string
}

const FIELDS = new Set(['asset', 'address', 'resource', 'amount', 'sequence_id'])
const RELEASE_FIELDS = new Set(['asset', 'address', 'sequence_id'])

export function stakeIntent(registry: Registry, proven: Proven, { name }: StakeAction): StakeIntent {
  const released = name === 'release'
  const { text, decimal } = fieldsOf(proven, released ? RELEASE_FIELDS : FIELDS)
  const ticker = text('asset') as string
  const asset = registry.asset(ticker)
  if (!asset) throw new Refusal('UNKNOWN_ASSET', `The asset ${ticker} is not in this node's registry`)
  if (asset.type !== 'native' || registry.network(asset.network)?.family !== 'tron') throw badField('asset', 'must be TRX')
  const sequence = text('sequence_id', true)
  const checked = validateAddress(registry, ticker, text('address') as string)
  if (!checked.valid) throw badField('address', checked.reason)
  const resource = released ? null : text('resource')
  if (resource !== null && resource !== 'ENERGY' && resource !== 'BANDWIDTH') throw badField('resource', 'must be ENERGY or BANDWIDTH')
  let amount = 0n
  try {
    if (!released) amount = parseAmount(decimal('amount'), asset.decimals)
  } catch (error) {
    if (error instanceof ChainError) throw badField('amount', error.message)
    throw error
  }
  if (!released && amount <= 0n) throw badField('amount', 'must be more than zero')
  const { workspace, sub_account } = proven.enrolment
  // A sequence_id stands for one thing in its wallet, be it a payment or a stake (rule 4).
  const key = sequence === null ? JSON.stringify([name, 'nonce', proven.enrolment.api_key, proven.nonce]) : sequenceKey(workspace, sub_account, ticker, sequence)
  const meaning = { workspace, sub_account, asset: ticker, address: checked.address, resource, amount: amount.toString() }
  return { action: name, ...meaning, resource, amount, key, content: sha256hex(JSON.stringify([key, name, meaning])) }
}
