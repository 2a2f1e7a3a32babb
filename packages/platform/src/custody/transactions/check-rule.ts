import { formatAmount, type Asset, type Network } from '@custody/chains'
import type { RuleBody } from '@custody/request-auth/bodies'
import { accountOf } from '../aml/address-key.ts'
import { readAmount } from '../assets/read-amount.ts'
import type { Queryable } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import { checkTransfer } from './payment.ts'

/** Amounts of a standing rule in the smallest unit, and its destination in canonical form. */
interface CheckedRule {
  min: bigint
  cap: bigint
  destination: string
  addressTag: string | null
}

/**
 * Checks that a transfer of the minimum amount of a standing rule would be possible, that the cap is
 * not below it, and that the rule has not expired.
 * @throws ApiError `INVALID_AMOUNT`, `INVALID_ADDRESS` or `INVALID_REQUEST`
 */
export function checkRule(
  services: Parameters<typeof checkTransfer>[0],
  body: RuleBody,
  { asset, network, now }: { asset: Asset; network: Network; now: Date },
): CheckedRule {
  const { amount, destination, addressTag } = checkTransfer(
    services,
    {
      asset: asset.asset_name,
      amount: body.min_amount,
      destination_address: body.destination_address,
      address_tag: body.address_tag,
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
    },
    asset,
    network,
    'min_amount',
  )
  const cap = readAmount(body.daily_cap, asset, 'daily_cap')
  if (cap < amount) {
    const least = `${formatAmount(amount, asset.decimals)} ${asset.asset_name}`
    throw new ApiError('INVALID_AMOUNT', `daily_cap: must be at least min_amount, ${least}`, {
      field: 'daily_cap',
    })
  }
  if (body.expires_at <= now)
    throw new ApiError('INVALID_REQUEST', 'expires_at: must be in the future', {
      field: 'expires_at',
    })
  return { min: amount, cap, destination, addressTag }
}

/**
 * Checks that the destination of a standing rule is not an address of its own sub-account.
 * @param subAccount ID of the sub-account
 * @throws ApiError `INVALID_ADDRESS`
 */
export async function assertNotOwnAddress(
  database: Queryable,
  subAccount: string,
  network: Network,
  destination: string,
): Promise<void> {
  const own = await database.one(
    'select 1 from chain_addresses where network = $1 and address = $2 and sub_account_id = $3',
    [network.code, accountOf(network, destination), subAccount],
  )
  if (own)
    throw new ApiError('INVALID_ADDRESS', "destination_address: is the wallet's own address", {
      field: 'destination_address',
    })
}
