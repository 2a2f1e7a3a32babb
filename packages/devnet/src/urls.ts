import type { Devnet } from './devnet.ts'

/** Where a client finds a local chain, or a face of it, and a command that can be pasted into a shell. */
export interface Endpoint { network: string; protocol: string; url: string; websocket?: string; example: string }

const post = (url: string, body: unknown): string => `curl -s ${url} -H 'content-type: application/json' -d '${JSON.stringify(body)}'`
const modern = (method: string, params?: unknown[]) => ({ jsonrpc: '2.0', id: 1, method, ...(params ? { params } : {}) })

/** Every endpoint of every local chain, in the order of the networks. */
export function endpointsOf(devnet: Devnet): Endpoint[] {
  const at = (path: string): string => devnet.url + path
  const socket = (path: string): string => at(path).replace(/^http/, 'ws')
  const [tron, solana, cardano] = [devnet.tron, devnet.solana, devnet.cardano]
  return [
    ...devnet.utxo.map(({ network: { code, path } }) => (
      { network: code, protocol: 'Bitcoin Core JSON-RPC', url: at(path), example: post(at(path), { id: 1, method: 'getblockcount' }) })),
    ...devnet.evm.map(({ network: { code, path } }) => (
      { network: code, protocol: 'Ethereum JSON-RPC', url: at(path), example: post(at(path), modern('eth_blockNumber', [])) })),
    ...devnet.tagged.flatMap(({ code, path }): Endpoint[] => (code === 'XRP'
      ? [
        {
          network: code, protocol: 'rippled', url: at(path), websocket: socket(path),
          example: post(at(path), { method: 'server_info', params: [{}] }),
        }
      ]
      : [
        { network: code, protocol: 'Stellar RPC', url: at(path), example: post(at(path), modern('getHealth')) },
        { network: code, protocol: 'Horizon', url: at(`${path}/horizon`), example: `curl -s ${at(`${path}/horizon/fee_stats`)}` },
      ])),
    { network: tron.code, protocol: 'java-tron HTTP', url: at(tron.path), example: `curl -s ${at(`${tron.path}/wallet/getnowblock`)}` },
    {
      network: solana.code, protocol: 'Solana JSON-RPC', url: at(solana.path), websocket: socket(solana.path),
      example: post(at(solana.path), modern('getHealth')),
    },
    { network: cardano.code, protocol: 'Blockfrost', url: at(cardano.path), example: `curl -s ${at(`${cardano.path}/blocks/latest`)}` },
  ]
}
