import { OMNIBUS_INDEX, pathOf, type Network } from '@custody/chains'
import { z } from 'zod'
import { ADDRESS_MAX, ID_MAX, WORD_MAX } from '../../core/bounds.ts'
import { pathShape } from '../addresses/present.ts'
import type { WalletRow } from '../assets/find-wallet.ts'

export const walletShape = z
  .object({
    id: z.string().max(ID_MAX),
    asset: z.string().max(WORD_MAX),
    status: z.enum(['active', 'inactive']),
    omnibus_address: z
      .string()
      .max(ADDRESS_MAX)
      .meta({ description: 'The first address of the wallet' }),
    path: pathShape,
    created_at: z.string(),
  })
  .meta({ id: 'Wallet' })

/**
 * Converts a wallet to its public shape.
 * @param omnibus its omnibus address, and the first element of its sub-account's derivation paths
 */
export function presentWallet(
  row: WalletRow,
  network: Network,
  omnibus: { address: string; subAccount: number },
) {
  return {
    id: row.id,
    asset: row.asset,
    status: row.status,
    omnibus_address: omnibus.address,
    path: pathOf(network, omnibus.subAccount, OMNIBUS_INDEX),
    created_at: row.created_at.toISOString(),
  }
}
