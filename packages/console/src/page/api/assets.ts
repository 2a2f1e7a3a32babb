import { signal } from '@preact/signals'
import { read } from './http.ts'
import type { AssetNames } from './types.ts'

/** Every asset of the installation that is not retired, by name. */
export const assetNames = signal<
  ReadonlyMap<
    string,
    AssetNames & {
      is_active: boolean
      contract_address: string | null
      min_withdrawal: string
      family: string
      issuer: string | null
      bridged: boolean
    }
  >
>(new Map())

const RETRY_MS = 5000

/**
 * Reads the assets once, because they change only with a new version. A failed read is repeated.
 */
export async function loadAssets(): Promise<void> {
  type Row = typeof assetNames.value extends ReadonlyMap<string, infer Inner> ? Inner : never
  for (;;) {
    const rows = await read<Row[]>('/assets').catch(() => null)
    if (rows !== null) {
      assetNames.value = new Map(rows.map((row) => [row.asset_name, row]))
      return
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}
