import { localTokens, REGISTRY } from '../registry.ts'

export interface SolanaToken {
  asset: string
  mint: string
  decimals: number
}

/**
 * The tokens that the asset registry names for the local chain: mints at whatever addresses stand
 * there.
 */
export const SOLANA_TOKENS: readonly SolanaToken[] = localTokens(REGISTRY, 'SOL').map(
  ({ asset, address, decimals }) => ({ asset, mint: address, decimals }),
)
