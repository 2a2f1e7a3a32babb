import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ThresholdError } from '@custody/threshold'
import { loadConfig, type Config, type Peer } from '../src/config.ts'
import { realEnvironment } from '../src/environment.ts'
import { setup } from '../src/setup.ts'
import { gravest } from '../src/sessions/batch.ts'
import { Store } from '../src/store/index.ts'
import { Link } from '../src/transport/client.ts'
import { Peers } from '../src/transport/peers.ts'

const home = mkdtempSync(join(tmpdir(), 'signer-link-'))
before(async () => { await setup({ home, ports: [40_001, 40_002, 40_003], mode: 'local' }) })
after(() => { rmSync(home, { recursive: true, force: true }) })

/** Node 2 as it lies to node 1: `lie` gets the answer to fill. */
async function lying(lie: (response: ServerResponse) => void): Promise<{ config: Config; peer: Peer; close: () => void }> {
  const read = (name: string) => readFileSync(join(home, 'node-2', name), 'utf8')
  const server = createServer({ key: read('tls.key'), cert: read('tls.crt') }, (_request, response) => { lie(response) })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const loaded = loadConfig(join(home, 'node-1'))
  const peerList = loaded.peerList.map((each) => (each.node === 2 ? { ...each, port: (server.address() as AddressInfo).port } : each))
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { config: { ...loaded, peerList }, peer: peerList.find(({ node }) => node === 2)!, close }
}

/** Bytes without end, as fast as they are taken. */
function flood(): { lie: (response: ServerResponse) => void; sent: () => number } {
  let sent = 0
  const lie = (response: ServerResponse): void => {
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(16_384))) sent += 16_384
    }
    response.on('drain', more)
    more()
  }
  return { lie, sent: () => sent }
}

test('attack: a peer whose answer never ends is cut off while it is read', async () => {
  const { lie, sent } = flood()
  const { config, peer, close } = await lying(lie)
  const link = new Link(config, peer)
  try {
    await assert.rejects(link.post('/peer/ping', '{}', 20_000, 1_000_000), /answered with more than 1000000 bytes/)
    assert.ok(sent() < 50_000_000, `${sent()} bytes were taken`)
  } finally {
    link.close()
    close()
  }
})

test('attack: a call whose answer is short takes no more than that from any peer', async () => {
  const { lie, sent } = flood()
  const { config, close } = await lying(lie)
  const store = new Store(join(home, 'flood.sqlite'), () => 1)
  const peers = new Peers(config, store, realEnvironment, () => {})
  try {
    for (const call of ['/peer/ping', '/peer/hash', '/peer/generation', '/peer/head-of']) {
      const before = sent()
      await assert.rejects(peers.call(2, call, {}, { timeout: 20_000 }), { code: 'PEER_UNAVAILABLE', message: /answered with more than 262144 bytes/ })
      assert.ok(sent() - before < 20_000_000, `${call}: ${sent() - before} bytes were taken`)
    }
    await assert.rejects(peers.call(2, '/peer/sign/open', {}, { timeout: 20_000 }), { code: 'PEER_UNAVAILABLE', message: /answered with more than 25165824 bytes/ })
  } finally {
    peers.close()
    store.close()
    close()
  }
})

test('attack: a peer that drips its answer byte by byte is cut off when the time is up', async () => {
  const { config, peer, close } = await lying((response) => {
    const timer = setInterval(() => { response.write('0') }, 5)
    response.on('close', () => { clearInterval(timer) })
  })
  const link = new Link(config, peer)
  try {
    await assert.rejects(link.post('/peer/ping', '{}', 200, 1_000_000), /did not answer within 200 ms/)
  } finally {
    link.close()
    close()
  }
})

test('attack: a cheat in one input hides behind garbage in another — the cheat is what counts', () => {
  const cheat = new ThresholdError('CHEAT', 'proven', 2)
  const garbage = new ThresholdError('MALFORMED', 'not a message', null)
  assert.equal(gravest([garbage, new Error('x'), cheat]), cheat)
  assert.equal(gravest([garbage]), garbage)
})
