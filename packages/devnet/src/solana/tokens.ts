export interface SolanaToken { asset: string; mint: string; decimals: number }

/** Tokens of the local chain: mints whose addresses nobody has a key for that is worth anything. */
export const SOLANA_TOKENS: readonly SolanaToken[] = [
  { asset: 'USDT_SOL', mint: 'wg5iSXxsT4Bq3MtZ4FfAxarKDCc9vWGqvgSF9DG2ab7', decimals: 6 },
  { asset: 'USDC_SOL', mint: 'G3EKxVNFL68xhz8DCRGT4eTp8ZKKouKjWhM3seuRzFKj', decimals: 6 },
]
