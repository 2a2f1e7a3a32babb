import { formatAmount } from '@custody/chains'
import type { Payment, Refusal } from '../../engine/chain.ts'
import type { Solana } from './fees.ts'

/**
 * Refuses destinations that are not wallets (programs, mints, token accounts), because coins sent
 * there may be lost, and amounts too small to create the account.
 */
export async function refusalOf(
  { client }: Solana,
  { to, amount, asset }: Payment,
): Promise<Refusal | null> {
  const account = await client.account(to)
  if (account && !account.wallet) {
    const reason =
      'is a program, a mint or another account that is not a wallet; coins sent there may be lost'
    return { field: 'destination_address', reason }
  }
  if (asset.type === 'token') return null
  const rent = await client.rent()
  if ((account?.balance ?? 0n) + amount >= rent) return null
  const needed = `${formatAmount(rent, asset.decimals)} ${asset.asset_name}`
  return {
    field: 'amount',
    reason: `the destination account does not exist yet; at least ${needed} are required to create it`,
  }
}
