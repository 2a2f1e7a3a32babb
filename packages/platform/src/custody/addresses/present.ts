import { paymentUri, pathOf, type Asset, type Network } from '@custody/chains'
import { z } from 'zod'
import { ADDRESS_MAX, ID_MAX, INT_MAX, NAME_MAX, URL_MAX, WORD_MAX } from '../../core/bounds.ts'

export interface AddressRow {
  id: string
  asset: string
  address: string
  address_tag: string | null
  label: string | null
  path_index: number
  created_at: Date
}

/** Derivation path of an address, relative to the workspace's key. */
export const pathShape = z.array(z.int().min(0).max(INT_MAX)).length(3).meta({
  description:
    'Derivation path [sub-account, chain, index], not hardened, relative to the key in GET /dac/v1/keys',
})

export const addressShape = z
  .object({
    id: z.string().max(ID_MAX),
    asset: z.string().max(WORD_MAX),
    address: z.string().max(ADDRESS_MAX),
    address_tag: z.string().max(NAME_MAX).nullable(),
    label: z.string().max(NAME_MAX).nullable(),
    payment_uri: z.string().max(URL_MAX).nullable().meta({
      description:
        'Payment URI for a QR code: BIP21, EIP-681, Solana Pay, SEP-7, CIP-13, xrpl:; null if there is no common format (TRX)',
    }),
    path: pathShape,
    created_at: z.string(),
  })
  .meta({ id: 'Address' })

/**
 * Converts an address to its public shape.
 * @param subAccount first element of the sub-account's derivation paths
 */
export function presentAddress(
  row: AddressRow,
  { asset, network }: { asset: Asset; network: Network },
  subAccount: number,
) {
  return {
    id: row.id,
    asset: row.asset,
    address: row.address,
    address_tag: row.address_tag,
    label: row.label,
    payment_uri: paymentUri(network, asset, { address: row.address, addressTag: row.address_tag }),
    path: pathOf(network, subAccount, row.path_index),
    created_at: row.created_at.toISOString(),
  }
}
