import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import { readSettings } from '../../../core/settings/settings.ts'
import { diagnoseNetworks, diagnosisLine } from './networks.ts'

/** An endpoint that answers, and is behind: it must not be reported as unreachable or as good. */

const servers: Server[] = []
after(() => {
  for (const each of servers) each.close()
})

/** Starts geth as it answers before its first synchronisation (1.17.10): block 0, nothing final. */
async function syncing(): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString()) as {
        id: number
        method: string
        params: unknown[]
      }
      const block = {
        number: '0x0',
        hash: `0x${'d4'.repeat(32)}`,
        parentHash: `0x${'00'.repeat(32)}`,
        timestamp: '0x0',
        transactions: [],
      }
      const body =
        method === 'eth_chainId'
          ? { result: '0x1' }
          : method === 'eth_getBlockByNumber' && params[0] !== 'finalized'
            ? { result: block }
            : { error: { code: -32_000, message: 'finalized block not found' } }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

test('an endpoint that synchronises is behind, with its block, its age and what helps', async () => {
  const registry = loadRegistry('mainnet')
  const diagnoses = await diagnoseNetworks({
    settings: { ...readSettings({}), network: 'mainnet' },
    registry,
    endpoints: { ETH: { endpoints: [{ url: await syncing() }], quorum: 1 } },
    local: null,
  })
  const found = diagnoses.find(({ network }) => network === 'ETH')!
  assert.deepEqual([found.state, found.height], ['behind', 0])
  assert.match(
    diagnosisLine(found),
    /^ETH +behind +it is behind: its newest block 0 is \d+ days old; transfers wait .*custody endpoint trust ETH --for 1h/,
  )
})
