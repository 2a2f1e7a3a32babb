import { z } from 'zod'

export interface AddressRow { id: string; asset: string; address: string; address_tag: string | null; label: string | null; created_at: Date }

export const addressShape = z.object({
  id: z.string(), asset: z.string(), address: z.string(), address_tag: z.string().nullable(), label: z.string().nullable(), created_at: z.string(),
})

export function presentAddress(row: AddressRow) {
  return { id: row.id, asset: row.asset, address: row.address, address_tag: row.address_tag, label: row.label, created_at: row.created_at.toISOString() }
}
