import { readFileSync } from 'node:fs'
import type { Abi, Hex } from 'viem'
import { getContractAddress, keccak256, toBytes } from 'viem/utils'
import { privateKeyToAddress } from 'viem/accounts'

export type Token = {
  asset: string
  /** Where the genesis phase must put it: it is a contract of the asset registry. */
  address: Hex
  decimals: number
  artefact: string
  supply: bigint
}

/** Code that stands at a fixed address before the first block. */
export type Predeploy = { address: Hex; artefact: string }

export type EvmNetwork = {
  code: string
  path: string
  chainId: number
  /** The asset code of the native coin. */
  native: string
  hardfork: string
  genesisTime: number
  tokens: Token[]
  predeploys: Predeploy[]
  /** No base fee, and transactions of type 0 only. */
  legacy: boolean
  /** Blocks that follow the last transaction at the busy pace. */
  quietBlocks: number
  /** Eager networks start with the process, the others on first use. */
  eager: boolean
}

/** The part of the asset registry's data that is read here. */
type RegistryData = {
  networks: { code: string; family: string; native_asset: string; confirmations: number | null; l1_fee_oracle?: Hex; legacy_gas_price?: boolean; local?: { chain_id?: number } }[]
  assets: { asset_name: string; ticker: string; network: string; type: string; decimals: number; contract_address?: { local?: Hex } }[]
}

const REGISTRY = new URL('../../../chains/data/registry.json', import.meta.url)
const WHOLE_SUPPLY = 10n ** 12n
const GENESIS_TIME = 1_700_000_000
/** London brought the base fee. */
const HARDFORK = 'osaka'
const HARDFORK_BEFORE_BASE_FEE = 'berlin'
/** Two blocks after the last transaction it is final, where the chain has finality of its own. */
const QUIET_BLOCKS = 4
const QUIET_BLOCKS_MORE = 3

/** A further EVM network is a line of the asset registry. */
export const EVM_NETWORKS: readonly EvmNetwork[] = networksOf(JSON.parse(readFileSync(REGISTRY, 'utf8')) as RegistryData)

function networksOf({ networks, assets }: RegistryData): EvmNetwork[] {
  return networks.flatMap(({ code, family, native_asset, confirmations, l1_fee_oracle, legacy_gas_price, local }): EvmNetwork[] => {
    if (family !== 'evm' || local?.chain_id === undefined) return []
    const legacy = legacy_gas_price === true
    return [{
      code,
      path: `/${code.toLowerCase()}`,
      chainId: local.chain_id,
      native: native_asset,
      hardfork: legacy ? HARDFORK_BEFORE_BASE_FEE : HARDFORK,
      genesisTime: GENESIS_TIME,
      legacy,
      quietBlocks: confirmations === null ? QUIET_BLOCKS : confirmations + QUIET_BLOCKS_MORE,
      eager: code === 'ETH',
      predeploys: l1_fee_oracle === undefined ? [] : [{ address: l1_fee_oracle, artefact: 'GasPriceOracleLike' }],
      tokens: assets.flatMap(({ asset_name: asset, ticker, network, type, decimals, contract_address }) => (
        network === code && type === 'token' && contract_address?.local !== undefined
          ? [{ asset, address: contract_address.local, decimals, artefact: ticker === 'USDT' ? 'TetherLike' : 'CircleLike', supply: WHOLE_SUPPLY * 10n ** BigInt(decimals) }]
          : [])),
    }]
  })
}

/** The first account of the mnemonic that every EVM development node knows: worthless by design. */
export const FAUCET_KEY: Hex = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'

/**
 * Each contract has a deployer of its own, so that its address depends on nothing but its name, and a token
 * that joins the registry later finds its place on a chain that exists already.
 */
export function deployerKey(asset: string): Hex {
  return keccak256(toBytes(`local deployer of ${asset}`))
}

export function deployedAddress(key: Hex): Hex {
  return getContractAddress({ from: privateKeyToAddress(key), nonce: 0n })
}

export function artefact(name: string): { abi: Abi; bytecode: Hex; runtime: Hex } {
  return JSON.parse(readFileSync(new URL(`../../contracts/${name}.json`, import.meta.url), 'utf8')) as { abi: Abi; bytecode: Hex; runtime: Hex }
}
