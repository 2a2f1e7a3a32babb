import { localTokens, REGISTRY } from '../registry.ts'

export interface SolanaToken {
  asset: string
  mint: string
  decimals: number
}

/**
 * Tokens of the asset registry for the local chain. Their mints are at the registry's addresses.
 */
export const SOLANA_TOKENS: readonly SolanaToken[] = localTokens(REGISTRY, 'SOL').map(
  ({ asset, address, decimals }) => ({ asset, mint: address, decimals }),
)
