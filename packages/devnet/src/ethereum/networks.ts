import { readFileSync } from 'node:fs'
import type { Abi, Hex } from 'viem'

export type Token = {
  asset: string
  /** Where the genesis phase must put it: it is a contract of the asset registry. */
  address: Hex
  decimals: number
  artefact: string
  supply: bigint
}

export type EvmNetwork = {
  code: string
  path: string
  chainId: number
  /** The asset code of the native coin. */
  native: string
  hardfork: string
  genesisTime: number
  tokens: Token[]
  /** Eager networks start with the process, the others on first use. */
  eager: boolean
}

/** A further EVM network is one more line here. */
export const EVM_NETWORKS: readonly EvmNetwork[] = [
  {
    code: 'ETH',
    path: '/eth',
    chainId: 31337,
    native: 'ETH',
    hardfork: 'osaka',
    genesisTime: 1_700_000_000,
    eager: true,
    tokens: [
      {
        asset: 'USDT_ETH',
        address: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
        decimals: 6,
        artefact: 'TetherLike',
        supply: 10n ** 12n * 10n ** 6n,
      },
    ],
  },
]

/** The first account of the mnemonic that every EVM development node knows: worthless by design. */
export const FAUCET_KEY: Hex = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'

export function artefact(name: string): { abi: Abi; bytecode: Hex } {
  return JSON.parse(readFileSync(new URL(`../../contracts/${name}.json`, import.meta.url), 'utf8')) as {
    abi: Abi
    bytecode: Hex
  }
}
