import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ThresholdError } from '@custody/threshold'
import { loadConfig } from '../src/config.ts'
import { setup } from '../src/setup.ts'
import { gravest } from '../src/signing/batch.ts'
import { Link } from '../src/transport/client.ts'

test('attack: a peer whose answer never ends is cut off while it is read', async () => {
  const home = mkdtempSync(join(tmpdir(), 'signer-link-'))
  await setup({ home, ports: [40_001, 40_002, 40_003], mode: 'local' })
  const read = (name: string) => readFileSync(join(home, 'node-2', name), 'utf8')
  let sent = 0
  const server = createServer({ key: read('tls.key'), cert: read('tls.crt') }, (_request, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(16_384))) sent += 16_384
    }
    response.on('drain', more)
    more()
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const config = loadConfig(join(home, 'node-1'))
  const peer = { ...config.peerList.find(({ node }) => node === 2)!, port: (server.address() as AddressInfo).port }
  const link = new Link(config, peer)
  try {
    await assert.rejects(link.post('/peer/ping', '{}', 20_000, 1_000_000), /answered with more than 1000000 bytes/)
    assert.ok(sent < 50_000_000, `${sent} bytes were taken`)
  } finally {
    link.close()
    server.closeAllConnections()
    server.close()
    rmSync(home, { recursive: true, force: true })
  }
})

test('attack: a cheat in one input hides behind garbage in another — the cheat is what counts', () => {
  const cheat = new ThresholdError('CHEAT', 'proven', 2)
  const garbage = new ThresholdError('MALFORMED', 'not a message', null)
  assert.equal(gravest([garbage, new Error('x'), cheat]), cheat)
  assert.equal(gravest([garbage]), garbage)
})
