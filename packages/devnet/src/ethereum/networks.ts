import type { Hex } from 'viem'
import { deployedAddress, tokenAddress } from '../evm/contracts.ts'
import type { Rollup } from './rollup.ts'
import { localTokens, REGISTRY, type RegistryData } from '../registry.ts'

export type Token = {
  asset: string
  /** Expected address after the genesis phase, because it is in the asset registry. */
  address: Hex
  decimals: number
  artefact: string
  supply: bigint
}

/** Code at a fixed address that exists before the first block. */
type Predeploy = { address: Hex; artefact: string }

export type EvmNetwork = {
  code: string
  path: string
  chainId: number
  /** Asset code of the native coin. */
  native: string
  hardfork: string
  genesisTime: number
  tokens: Token[]
  predeploys: Predeploy[]
  /** Fee model for publishing on the parent chain. */
  rollup: Rollup
  /** The network has no base fee, and accepts only transactions of type 0. */
  legacy: boolean
  /**
   * Least tip per gas that its nodes accept, and the beginning of their refusal. For a transaction
   * of type 0 the tip is its gas price.
   */
  minTip: { wei: bigint; refusal: string }
  /** Number of blocks that follow the last transaction at the busy pace. */
  quietBlocks: number
  /** Eager networks start with the process, the others on first use. */
  eager: boolean
}

const WHOLE_SUPPLY = 10n ** 12n
const GENESIS_TIME = 1_700_000_000
/** Hard forks of the networks. London introduced the base fee. */
const HARDFORK = 'osaka'
const HARDFORK_BEFORE_BASE_FEE = 'berlin'
/** A transaction is final two blocks later, on chains with their own finality. */
const QUIET_BLOCKS = 4
const QUIET_BLOCKS_MORE = 3
/** Default of geth's `--txpool.pricelimit`. */
const MIN_TIP = { wei: 1n, refusal: 'transaction gas price below minimum' }
/** Networks whose nodes accept only higher tips. Bor has the words of an older geth. */
const MIN_TIPS: Record<string, EvmNetwork['minTip']> = {
  POL: { wei: 25_000_000_000n, refusal: 'transaction underpriced' },
}

/**
 * Returns the EVM networks of the asset registry. A further EVM network is a line of the registry.
 */
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
        minTip: MIN_TIPS[code] ?? MIN_TIP,
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
 * Returns the fee model of a roll-up. OP Stack networks have different forks here, so that both
 * formulas of the operator fee are used.
 */
function rollupOf(code: string, hasOracle: boolean): Rollup {
  if (code === 'ARB') return 'arbitrum'
  if (!hasOracle) return null
  return code === 'BASE' ? 'jovian' : 'isthmus'
}

/**
 * Returns the address of a token's local contract.
 * @throws Error with the address that the registry must contain
 */
function contractOf(asset: string, named: string): Hex {
  const address = tokenAddress(asset)
  if (named !== address && named !== deployedAddress(FAUCET_KEY))
    throw new Error(
      `the asset registry has ${asset} at ${named}: on the local chain it is at ${address}`,
    )
  return named as Hex
}

/**
 * Key of the first account of the mnemonic that every EVM development node uses, so the coins are
 * worthless by design.
 */
export const FAUCET_KEY: Hex = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'

export const EVM_NETWORKS: readonly EvmNetwork[] = evmNetworksOf(REGISTRY)
