import { formatAmount } from '@custody/chains'
import type { Payment, Refusal } from '../../engine/chain.ts'
import type { Tagged } from './tagged.ts'

/**
 * Refuses an account that does not exist and would not be created, one that requires a tag, and one
 * that accepts no payments. Returns null otherwise.
 */
export async function refusalOf(
  { client, dialect }: Tagged,
  { to, tag, amount, asset }: Payment,
): Promise<Refusal | null> {
  const isMuxed = dialect.isMuxed(to)
  const account = await client.account(to)
  if (!account && isMuxed) {
    const reason =
      'the account behind this M… address does not exist, and it cannot be created through it'
    return { field: 'destination_address', reason }
  }
  if (!account) {
    const least = await client.activation()
    if (amount >= least) return null
    const needed = `${formatAmount(least, asset.decimals)} ${asset.asset_name}`
    return {
      field: 'amount',
      reason: `the destination account does not exist yet; at least ${needed} are required to create it`,
    }
  }
  if (account.requiresTag && tag === null && !isMuxed) {
    return {
      field: 'address_tag',
      reason: `the destination accepts payments only with a ${dialect.tagName}`,
    }
  }
  if (account.closed) {
    return {
      field: 'destination_address',
      reason: 'the destination accepts payments only from accounts that it has authorised',
    }
  }
  return null
}
