import { readFileSync } from 'node:fs'

/** The part of the asset registry that is used here. Additions take effect at the next start. */
export interface RegistryData {
  networks: {
    code: string
    family: string
    native_asset: string
    confirmations: number | null
    l1_fee_oracle?: `0x${string}`
    legacy_gas_price?: boolean
    local?: { chain_id?: number; genesis?: string; utxo?: object }
  }[]
  assets: {
    asset_name: string
    ticker: string
    network: string
    type: string
    decimals: number
    contract_address?: { local?: string }
  }[]
  coins: { ticker: string; coingecko_id: string; local_price: string }[]
}

/** Reads the registry without coins that only assets of real networks have. */
function readRegistry(): RegistryData {
  const data = JSON.parse(
    readFileSync(new URL('../../chains/data/registry.json', import.meta.url), 'utf8'),
  ) as RegistryData
  const local = new Set(
    data.assets
      .filter((asset) => asset.type === 'native' || asset.contract_address?.local !== undefined)
      .map(({ ticker }) => ticker),
  )
  return { ...data, coins: data.coins.filter(({ ticker }) => local.has(ticker)) }
}

export const REGISTRY = readRegistry()

export interface LocalToken {
  asset: string
  ticker: string
  decimals: number
  address: string
}

/** Returns the tokens of one network that have a local contract. */
export function localTokens({ assets }: RegistryData, code: string): LocalToken[] {
  return assets.flatMap(
    ({ asset_name: asset, ticker, network, type, decimals, contract_address: contract }) =>
      network === code && type === 'token' && contract?.local !== undefined
        ? [{ asset, ticker, decimals, address: contract.local }]
        : [],
  )
}
