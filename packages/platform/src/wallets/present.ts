import { z } from 'zod'

export interface WalletRow { id: string; asset: string; status: string; created_at: Date; network: string }

export const walletShape = z.object({
  id: z.string(), asset: z.string(), status: z.enum(['active', 'inactive']), created_at: z.string(),
})

export function presentWallet(row: WalletRow) {
  return { id: row.id, asset: row.asset, status: row.status, created_at: row.created_at.toISOString() }
}
