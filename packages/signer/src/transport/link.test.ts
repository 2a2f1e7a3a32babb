import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { ThresholdError } from '@custody/threshold'
import { loadConfig, type Config, type Peer } from '../config.ts'
import { realEnvironment } from '../environment.ts'
import { setup } from '../setup.ts'
import { gravest } from '../sessions/batch.ts'
import { Store } from '../store/index.ts'
import { callOf, FrameReader, writeFrame } from './channel.ts'
import { Link } from './client.ts'
import { Peers } from './peers.ts'
import { takesCalls } from '../../testing/channels.ts'

const home = mkdtempSync(join(tmpdir(), 'signer-link-'))
before(async () => {
  await setup({ home, ports: [40_001, 40_002, 40_003], mode: 'local' })
})
after(() => {
  rmSync(home, { recursive: true, force: true })
})

/**
 * Runs node 2 as a peer that sends false data to node 1: `lie` receives the connection on which a
 * call arrived.
 */
async function lying(
  lie: (stream: TLSSocket) => void,
): Promise<{ config: Config; peer: Peer; close: () => void }> {
  const read = (name: string) => readFileSync(join(home, 'node-2', name), 'utf8')
  const server = takesCalls(
    createServer({ key: read('tls.key'), cert: read('tls.crt') }),
    (_call, stream) => {
      lie(stream)
    },
  )
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const loaded = loadConfig(join(home, 'node-1'))
  const peerList = loaded.peerList.map((each) =>
    each.node === 2 ? { ...each, port: (server.address() as AddressInfo).port } : each,
  )
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { config: { ...loaded, peerList }, peer: peerList.find(({ node }) => node === 2)!, close }
}
const lengthOf = (length: number): Buffer => {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(length)
  return head
}
const HELLO = Buffer.from('{}')

/**
 * Sends bytes without end, as fast as they are accepted, in an answer with the announced `length`.
 */
function flood(length: number): { lie: (stream: TLSSocket) => void; sent: () => number } {
  let sent = 0
  const lie = (stream: TLSSocket): void => {
    stream.write(lengthOf(length))
    const more = (): void => {
      while (!stream.destroyed && stream.write(Buffer.alloc(16_384))) sent += 16_384
    }
    stream.on('drain', more)
    more()
  }
  return { lie, sent: () => sent }
}

test('attack: disconnects a peer whose response never ends', async () => {
  for (const [length, why] of [
    [0xffff_ffff, /sent invalid data: more than 1000000 bytes/],
    [900_000, /sent invalid data: more than one frame/],
  ] as const) {
    const { lie, sent } = flood(length)
    const { config, peer, close } = await lying(lie)
    const link = new Link(config, peer, Date.now)
    try {
      await assert.rejects(link.post('/peer/ping', HELLO, 60_000, 1_000_000), why)
      assert.ok(sent() < 50_000_000, `${sent()} bytes were taken`)
    } finally {
      link.close()
      close()
    }
  }
})

test('attack: a call with a short response stops reading at its size limit', async () => {
  const { lie, sent } = flood(0xffff_ffff)
  const { config, close } = await lying(lie)
  const store = new Store(join(home, 'flood.sqlite'), () => 1)
  const peers = new Peers({
    config,
    store,
    environment: realEnvironment,
    log: () => {},
    assertNotBanned: () => {},
  })
  try {
    for (const call of ['/peer/ping', '/peer/hash', '/peer/generation', '/peer/head-of']) {
      const before = sent()
      await assert.rejects(peers.call(2, call, {}, { timeout: 60_000 }), {
        code: 'PEER_UNAVAILABLE',
        message: /sent invalid data: more than 262144 bytes/,
      })
      assert.ok(sent() - before < 20_000_000, `${call}: ${sent() - before} bytes were taken`)
    }
    await assert.rejects(peers.call(2, '/peer/sign/open', {}, { timeout: 60_000 }), {
      code: 'PEER_UNAVAILABLE',
      message: /sent invalid data: more than 25165824 bytes/,
    })
  } finally {
    peers.close()
    store.close()
    close()
  }
})

test('attack: disconnects a peer that sends its response byte by byte at the deadline', async () => {
  const { config, peer, close } = await lying((stream) => {
    stream.write(lengthOf(100_000))
    const timer = setInterval(() => {
      stream.write('0')
    }, 5)
    stream.on('close', () => {
      clearInterval(timer)
    })
  })
  const link = new Link(config, peer, Date.now)
  try {
    await assert.rejects(
      link.post('/peer/ping', HELLO, 200, 1_000_000),
      /did not respond within 200 ms/,
    )
  } finally {
    link.close()
    close()
  }
})

test('attack: an unsolicited message of a peer does not count as the next response', async () => {
  const dropped = Promise.withResolvers<void>()
  const { config, peer, close } = await lying((stream) => {
    stream.once('close', () => {
      dropped.resolve()
    })
    writeFrame(stream, Buffer.from('right'))
    setTimeout(() => {
      writeFrame(stream, Buffer.from('early'))
    }, 20)
  })
  const link = new Link(config, peer, Date.now)
  try {
    assert.equal(String(await link.post('/peer/ping', HELLO, 60_000, 1_000_000)), 'right')
    await dropped.promise
    // The next call uses its own connection.
    assert.equal(String(await link.post('/peer/ping', HELLO, 60_000, 1_000_000)), 'right')
  } finally {
    link.close()
    close()
  }
})

test('a lost connection fails only its own call, and the next call gets a new connection', async () => {
  let received = 0
  const { config, peer, close } = await lying((stream) => {
    if (++received === 1) stream.destroy()
    else
      setTimeout(() => {
        writeFrame(stream, Buffer.from(`answer ${received}`))
      }, 5)
  })
  const link = new Link(config, peer, Date.now)
  try {
    await assert.rejects(link.post('/peer/ping', HELLO, 60_000, 1000), /closed|reset/)
    assert.equal(String(await link.post('/peer/ping', HELLO, 60_000, 1000)), 'answer 2')
  } finally {
    link.close()
    close()
  }
})

test('calls above the number of connections wait, within their own time limit', async () => {
  const held: TLSSocket[] = []
  let isFree = false
  const answer = (stream: TLSSocket): void => {
    writeFrame(stream, Buffer.from('done'))
  }
  const { config, peer, close } = await lying((stream) => {
    if (isFree) answer(stream)
    else held.push(stream)
  })
  const link = new Link(config, peer, Date.now)
  try {
    const calls = Array.from({ length: 70 }, (_, at) =>
      link.post('/peer/ping', HELLO, at < 66 ? 60_000 : 1, 1000),
    )
    const ends = Promise.allSettled(calls)
    while (held.length < 64) await sleep(10)
    await sleep(100)
    assert.equal(held.length, 64)
    isFree = true
    held.forEach(answer)
    assert.deepEqual(
      (await ends).map(({ status }) => status === 'fulfilled'),
      Array.from({ length: 70 }, (_, at) => at < 66),
    )
  } finally {
    link.close()
    close()
  }
})

test('parses frames wherever the stream was split', () => {
  const reader = new FrameReader()
  const whole = Buffer.concat([lengthOf(5), Buffer.from('hello')])
  for (const byte of whole.subarray(0, -1)) assert.equal(reader.push(Buffer.from([byte]), 5), null)
  assert.equal(String(reader.push(whole.subarray(-1), 5)), 'hello')
  assert.equal(String(reader.push(lengthOf(0), 5)), '')
  assert.throws(() => reader.push(lengthOf(6), 5), /more than 5 bytes/)
  assert.throws(
    () => new FrameReader().push(Buffer.concat([whole, Buffer.from('x')]), 5),
    /more than one frame/,
  )
  for (const short of [Buffer.alloc(0), Buffer.alloc(1), Buffer.from([0, 9, 1])])
    assert.throws(() => callOf(short), /without a name/)
})

test('attack: detects a cheat in one input although another input contains invalid data', () => {
  const cheat = new ThresholdError('CHEAT', 'proven', 2)
  const garbage = new ThresholdError('MALFORMED', 'not a message', null)
  assert.equal(gravest([garbage, new Error('x'), cheat]), cheat)
  assert.equal(gravest([garbage]), garbage)
})
