import { signal } from '@preact/signals'
import { read } from './http.ts'
import type { AssetNames } from './types.ts'

/** Every asset of the installation that is not retired, by its name. */
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

/** Read once: it changes with a new version only. */
export async function loadAssets(): Promise<void> {
  type Row = typeof assetNames.value extends ReadonlyMap<string, infer Inner> ? Inner : never
  const rows = await read<Row[]>('/assets').catch(() => [])
  assetNames.value = new Map(rows.map((row) => [row.asset_name, row]))
}
