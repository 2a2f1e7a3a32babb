import { paymentUri, type Registry } from '@custody/chains'
import { z } from 'zod'

export interface AddressRow { id: string; asset: string; address: string; address_tag: string | null; label: string | null; created_at: Date }

export const addressShape = z.object({
  id: z.string(), asset: z.string(), address: z.string(), address_tag: z.string().nullable(), label: z.string().nullable(),
  payment_uri: z.string().nullable().meta({ description: 'For a QR code: BIP21, EIP-681, SEP-7, …' }), created_at: z.string(),
})

export function presentAddress(row: AddressRow, registry: Registry) {
  const asset = registry.asset(row.asset)
  return { id: row.id, asset: row.asset, address: row.address, address_tag: row.address_tag, label: row.label,
    payment_uri: asset ? paymentUri(registry.networkOf(asset), asset, { address: row.address, addressTag: row.address_tag }) : null, created_at: row.created_at.toISOString() }
}
