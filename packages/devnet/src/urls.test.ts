import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { after, before, test } from 'node:test'
import type { Endpoint as ChainEndpoint } from './local-chain.ts'
import { REGISTRY } from './registry.ts'
import { removeHome, startDevnet, tempHome, type Running } from '../testing/support.ts'

type Endpoint = ChainEndpoint & { network: string }
const home = tempHome()
let devnet: Running

before(async () => {
  devnet = await startDevnet(home)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

test('every local chain has an endpoint, and its example command works when pasted', async () => {
  const { endpoints } = await devnet.control<{ endpoints: Endpoint[] }>({ command: 'urls' })
  const codes = new Set(endpoints.map(({ network }) => network))
  assert.deepEqual(
    [...codes].sort(),
    REGISTRY.networks
      .filter(({ local }) => local)
      .map(({ code }) => code)
      .sort(),
  )
  for (const { network, protocol, url, example } of endpoints) {
    assert.ok(url.startsWith(devnet.url) && example.includes(url), network)
    const { stdout, status } = spawnSync('sh', ['-c', example], { encoding: 'utf8' })
    assert.equal(status, 0, example)
    const answer = JSON.parse(stdout) as { error?: unknown }
    assert.ok(
      answer.error === undefined || answer.error === null,
      `${network}, ${protocol}: ${stdout}`,
    )
  }
})

test('a WebSocket connects to each listed WebSocket URL', async () => {
  const { endpoints } = await devnet.control<{ endpoints: Endpoint[] }>({ command: 'urls' })
  const sockets = endpoints.filter(({ websocket }) => websocket !== undefined)
  assert.deepEqual(
    sockets.map(({ network }) => network),
    ['XRP', 'SOL'],
  )
  for (const { websocket } of sockets) {
    const socket = new WebSocket(websocket as string)
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener('open', () => resolve())
      socket.addEventListener('error', () => reject(new Error(`${websocket} does not open`)))
    })
    socket.close()
  }
})
