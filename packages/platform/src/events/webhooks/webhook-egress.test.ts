import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { createServer, type Server } from 'node:http'
import { createServer as createSocketServer, type AddressInfo, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { freePorts } from '../../../../../testing/free-ports.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { EgressPolicy, type Resolve } from './egress-policy.ts'
import { Sender } from './send.ts'

/**
 * Tests of the addresses to which webhooks may be sent, for every notation of an address and every
 * DNS change; and of how the sender handles responses.
 */
const none: Resolve = (_name, _options, done) =>
  done(Object.assign(new Error('nobody knows it'), { code: 'ENOTFOUND' }), [])
const closed = new EgressPolicy([], none)
const NOTHING: Record<string, string> = {}

/** Notations of refused addresses, as they may occur in a URL. */
const REFUSED = [
  // Loopback addresses, in every base and length that the URL standard normalizes.
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0177.0.0.1',
  '017700000001',
  '127.0.0.1.',
  '①②⑦.⓪.⓪.①',
  '127.255.255.254',
  '0',
  '0.0.0.0',
  '[::1]',
  '[::]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:ffff:7f00:1]',
  '[::127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  // Private, link-local, carrier-grade NAT, benchmarking, documentation, multicast, broadcast and
  // reserved addresses.
  '10.0.0.1',
  '10.255.255.255',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.0.1',
  '0xc0a80001',
  '3232235521',
  '169.254.0.1',
  '100.64.0.1',
  '100.127.255.254',
  '198.18.0.1',
  '192.0.0.8',
  '192.0.2.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '255.255.255.255',
  '192.88.99.1',
  '[fe80::1]',
  '[fec0::1]',
  '[fc00::1]',
  '[fd12:3456::1]',
  '[ff02::1]',
  '[2001:db8::1]',
  '[100::1]',
  '[5f00::1]',
  '[4000::1]',
  // IPv4 addresses within IPv6 addresses: NAT64, 6to4, Teredo.
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::1]',
  '[2002:7f00:1::]',
  '[2002:a9fe:a9fe::1]',
  '[2001:0:4136:e378:8000:63bf:3fff:fdd2]',
  '[::ffff:10.0.0.1]',
  '[::ffff:169.254.169.254]',
  // Metadata address at which cloud providers serve credentials.
  '169.254.169.254',
  '0xa9fea9fe',
  '2852039166',
  '0251.0376.0251.0376',
  '169.254.170.2',
  '168.63.129.16',
  '[::ffff:168.63.129.16]',
  '100.100.100.200',
  '192.0.0.192',
  '[fd00:ec2::254]',
  '[fd20:ce::254]',
]
const ALLOWED = [
  '1.1.1.1',
  '8.8.8.8',
  '93.184.215.14',
  '172.15.255.255',
  '172.32.0.1',
  '100.63.255.255',
  '100.128.0.1',
  '[2606:4700:4700::1111]',
  '[2a00:1450:4001:81b::200e]',
]

test('refuses every spelling of an address outside the public Internet', () => {
  for (const host of REFUSED)
    assert.throws(
      () => closed.check(new URL(`http://${host}/`)),
      /to which webhooks are not sent/,
      host,
    )
  for (const host of ALLOWED) closed.check(new URL(`https://${host}/`))
})

test('refuses a malformed address before connecting', () => {
  for (const text of ['', 'localhost', 'fe80::1%eth0', '1.2.3', 'x', '::g', '127.0.0.1/8'])
    assert.equal(closed.allows(text), false, text)
})

test('allows public addresses and the operator’s ranges, and no others', () => {
  const reach = new EgressPolicy(['10.1.0.0/16', 'fd00::/8', '127.0.0.1/32'], none)
  for (const text of ['10.1.2.3', 'fd00::1', '127.0.0.1', '::ffff:10.1.2.3', '1.1.1.1'])
    assert.ok(reach.allows(text), text)
  for (const text of ['10.2.0.1', '127.0.0.2', 'fc00::1', '::1', '169.254.169.254'])
    assert.ok(!reach.allows(text), text)
})

const servers: (Server | ReturnType<typeof createSocketServer>)[] = []
const senders: Sender[] = []
after(async () => {
  for (const sender of senders) sender.close()
  for (const server of servers) {
    if ('closeAllConnections' in server) server.closeAllConnections()
    server.close()
  }
})
const listen = async (server: Server | ReturnType<typeof createSocketServer>): Promise<number> => {
  servers.push(server)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve())
  })
  return (server.address() as AddressInfo).port
}
const environment = systemEnvironment()
const senderOver = (reach: EgressPolicy, more: object = {}): Sender => {
  const sender = new Sender({ ...environment, ...more }, reach)
  senders.push(sender)
  return sender
}
const forever = new AbortController().signal
/**
 * Returns a resolver that returns a different result each time, and the names that it was queried
 * for.
 */
function turning(...answers: string[][]): { resolve: Resolve; requests: string[] } {
  const requests: string[] = []
  return {
    requests,
    resolve: (name, _options, done) => {
      const addresses = answers[Math.min(requests.push(name) - 1, answers.length - 1)] as string[]
      done(
        null,
        addresses.map((address): LookupAddress => ({
          address,
          family: address.includes(':') ? 6 : 4,
        })),
      )
    },
  }
}

test('checks the address to which a host name resolves at connection time', async () => {
  let reached = 0
  const port = await listen(
    createServer((_request, response) => {
      reached++
      response.end()
    }),
  )
  const names = turning(
    ['127.0.0.1'],
    ['10.0.0.1', '::1'],
    ['::ffff:127.0.0.1'],
    ['169.254.169.254'],
  )
  const sender = senderOver(new EgressPolicy([], names.resolve))
  for (let n = 0; n < 4; n++) {
    const answer = await sender.post(`http://rebound.example:${port}/`, NOTHING, '{}', forever)
    assert.match(
      answer?.error ?? '',
      /rebound\.example \(.*\) is a private, local or reserved address/,
    )
  }
  assert.equal(names.requests.length, 4, 'again each time')
  for (const host of ['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', '0x7f.1', 'localhost']) {
    const answer = await senderOver(new EgressPolicy([], turning(['127.0.0.1']).resolve)).post(
      `http://${host}:${port}/`,
      NOTHING,
      '{}',
      forever,
    )
    assert.match(answer?.error ?? '', /to which webhooks are not sent/, host)
  }
  assert.equal(reached, 0)
  // If one of two addresses is allowed, the sender connects to that one.
  const mixed = turning(['169.254.169.254', '127.0.0.1'])
  assert.equal(
    (
      await senderOver(new EgressPolicy(['127.0.0.1/32'], mixed.resolve)).post(
        `http://both.example:${port}/`,
        NOTHING,
        '{}',
        forever,
      )
    )?.status,
    200,
  )
  assert.equal(reached, 1)
  const unknown = await senderOver(new EgressPolicy([], none)).post(
    'https://nobody.example/',
    NOTHING,
    '{}',
    forever,
  )
  assert.match(unknown?.error ?? '', /nobody knows it|ENOTFOUND/)
})

test('one deadline covers connecting, headers, and a body that never ends', async () => {
  const local = new EgressPolicy(['127.0.0.0/8'], none)
  const open = new Set<Socket>()
  const raw = (greet: (socket: Socket) => void) =>
    listen(
      createSocketServer((socket) => {
        open.add(socket)
        socket.on('error', () => undefined).once('data', () => greet(socket))
      }),
    )
  const cases = {
    silent: await raw(() => undefined),
    'headers by and by': await raw((socket) => socket.write('HTTP/1.1 200 OK\r\nx-a: 1\r\n')),
    'body by and by': await raw((socket) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nsome'),
    ),
  }
  for (const [name, port] of Object.entries(cases)) {
    const slept: number[] = []
    let pass: () => void = () => undefined
    const sender = senderOver(local, {
      sleep: (ms: number, signal: AbortSignal) =>
        new Promise<void>((resolve) => {
          slept.push(ms)
          pass = resolve
          signal.addEventListener('abort', () => resolve())
        }),
    })
    const answering = sender.post(`http://127.0.0.1:${port}/`, NOTHING, '{}', forever)
    while (open.size === 0) await new Promise(setImmediate)
    open.clear()
    await new Promise((resolve) => setTimeout(resolve, 20))
    pass()
    assert.deepEqual(
      [slept, (await answering)?.error],
      [[15_000], 'no complete response within 15 s'],
      name,
    )
  }
})

test('reads an endless response up to a size limit, and uses its status', async () => {
  let sent = 0
  const port = await listen(
    createServer((_request, response) => {
      const more = (): void => {
        sent += 65_536
        if (!response.destroyed && sent < 2 ** 30) response.write('x'.repeat(65_536), more)
      }
      more()
    }),
  )
  const answer = await senderOver(new EgressPolicy(['127.0.0.0/8'], none)).post(
    `http://127.0.0.1:${port}/`,
    NOTHING,
    '{}',
    forever,
  )
  assert.deepEqual([answer?.status, answer?.error, answer?.text?.length], [200, null, 1000])
  assert.ok(sent < 2 ** 28, `${sent} bytes were taken`)
})

test('an aborted delivery has an unknown result, and is not reported', async () => {
  const port = await listen(createServer(() => undefined))
  const ending = new AbortController()
  const answering = senderOver(new EgressPolicy(['127.0.0.0/8'], none)).post(
    `http://127.0.0.1:${port}/`,
    NOTHING,
    '{}',
    ending.signal,
  )
  ending.abort()
  assert.equal(await answering, null)
})

test('a closed idle connection is not a failure, and a response that is not HTTP is one', async () => {
  let requests = 0
  const server = createServer((_request, response) => {
    requests++
    response.end('ok')
  })
  const port = await listen(server)
  const sender = senderOver(new EgressPolicy(['127.0.0.0/8'], none))
  const url = `http://127.0.0.1:${port}/`
  assert.equal((await sender.post(url, NOTHING, '{}', forever))?.status, 200)
  server.closeAllConnections()
  assert.equal((await sender.post(url, NOTHING, '{}', forever))?.status, 200)
  assert.equal(requests, 2)
  const nonsense = await listen(
    createSocketServer((socket) =>
      socket.on('error', () => undefined).once('data', () => socket.end('nonsense\r\n\r\n')),
    ),
  )
  assert.match(
    (await sender.post(`http://127.0.0.1:${nonsense}/`, NOTHING, '{}', forever))?.error ?? '',
    /Parse Error|Expected HTTP/,
  )
  const [unused] = await freePorts(1)
  assert.match(
    (await sender.post(`http://127.0.0.1:${unused}/`, NOTHING, '{}', forever))?.error ?? '',
    /ECONNREFUSED/,
  )
})
