import { SolanaClient, type Asset, type Network } from '../src/index.ts'

const SOL = {
  code: 'SOL',
  name: 'Solana',
  family: 'solana',
  curve: 'ed25519',
  mode: 'mainnet',
  native_asset: 'SOL',
  genesis: 'G',
} as unknown as Network
export const MINT = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v'
export const USDC = {
  asset_name: 'USDC_SOL',
  type: 'token',
  contract_address: MINT,
  decimals: 6,
} as unknown as Asset
export const OWNER = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'
export const PAYER = 'vines1vzrYbzLMRdu58ou5XTby4qAqVRLmqo36NKPTg'

export type Answers = Record<string, (params: number[]) => unknown>
export const refusal = (code: number, message: string) => ({ refused: { code, message } })
/** A node with responses by method. */
export function client(answers: Answers): SolanaClient {
  return new SolanaClient(SOL, [USDC], { url: 'http://node' }, async (_url, init) => {
    const { method, params } = JSON.parse(String(init.body)) as { method: string; params: number[] }
    const value = answers[method]?.(params) as { refused?: unknown } | string
    const text =
      typeof value === 'string' && value.startsWith('raw:')
        ? `{"result":${value.slice(4)}}`
        : JSON.stringify(
            typeof value === 'object' && value?.refused
              ? { error: value.refused }
              : { result: value ?? null },
          )
    return new Response(text)
  })
}
export const head = (
  blockhash: string,
  previousBlockhash: string,
  parentSlot: number,
  blockHeight = 1,
) => ({ blockhash, previousBlockhash, parentSlot, blockHeight })
