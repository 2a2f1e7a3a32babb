import type { Hex } from 'viem'
import { deployedAddress, tokenAddress } from '../evm/contracts.ts'
import type { Rollup } from './rollup.ts'
import { localTokens, REGISTRY, type RegistryData } from '../registry.ts'

export type Token = {
  asset: string
  /** Where the genesis phase must put it: it is a contract of the asset registry. */
  address: Hex
  decimals: number
  artefact: string
  supply: bigint
}

/** Code that stands at a fixed address before the first block. */
type Predeploy = { address: Hex; artefact: string }

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
  /** How it charges for publishing on the chain below. */
  rollup: Rollup
  /** No base fee, and transactions of type 0 only. */
  legacy: boolean
  /** Blocks that follow the last transaction at the busy pace. */
  quietBlocks: number
  /** Eager networks start with the process, the others on first use. */
  eager: boolean
}

const WHOLE_SUPPLY = 10n ** 12n
const GENESIS_TIME = 1_700_000_000
/** London brought the base fee. */
const HARDFORK = 'osaka'
const HARDFORK_BEFORE_BASE_FEE = 'berlin'
/** Two blocks after the last transaction it is final, where the chain has finality of its own. */
const QUIET_BLOCKS = 4
const QUIET_BLOCKS_MORE = 3

/** A further EVM network is a line of the asset registry. */
export function evmNetworksOf(registry: RegistryData): EvmNetwork[] {
  return registry.networks.flatMap((line): EvmNetwork[] => {
    const { code, family, native_asset, confirmations, l1_fee_oracle, legacy_gas_price, local } =
      line
    if (family !== 'evm' || local?.chain_id === undefined) return []
    const legacy = legacy_gas_price === true
    return [
      {
        code,
        path: `/${code.toLowerCase()}`,
        chainId: local.chain_id,
        native: native_asset,
        hardfork: legacy ? HARDFORK_BEFORE_BASE_FEE : HARDFORK,
        genesisTime: GENESIS_TIME,
        legacy,
        quietBlocks: confirmations === null ? QUIET_BLOCKS : confirmations + QUIET_BLOCKS_MORE,
        eager: code === 'ETH',
        rollup: rollupOf(code, l1_fee_oracle !== undefined),
        predeploys:
          l1_fee_oracle === undefined
            ? []
            : [{ address: l1_fee_oracle, artefact: 'GasPriceOracleLike' }],
        tokens: localTokens(registry, code).map(({ asset, ticker, decimals, address }) => ({
          asset,
          address: contractOf(asset, address),
          decimals,
          artefact: ticker === 'USDT' ? 'TetherLike' : 'CircleLike',
          supply: WHOLE_SUPPLY * 10n ** BigInt(decimals),
        })),
      },
    ]
  })
}

/**
 * OP Stack networks differ by fork here, so that both formulas of the operator fee are charged
 * somewhere.
 */
function rollupOf(code: string, hasOracle: boolean): Rollup {
  if (code === 'ARB') return 'arbitrum'
  if (!hasOracle) return null
  return code === 'BASE' ? 'jovian' : 'isthmus'
}

/**
 * Where a token's local contract stands. @throws Error that names the address which the registry
 * must have
 */
function contractOf(asset: string, named: string): Hex {
  const address = tokenAddress(asset)
  if (named !== address && named !== deployedAddress(FAUCET_KEY))
    throw new Error(
      `the asset registry has ${asset} at ${named}: on the local chain it is at ${address}`,
    )
  return named as Hex
}

/** The first account of the mnemonic that every EVM development node knows: worthless by design. */
export const FAUCET_KEY: Hex = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'

export const EVM_NETWORKS: readonly EvmNetwork[] = evmNetworksOf(REGISTRY)
