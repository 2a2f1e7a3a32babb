import { spawnSync } from 'node:child_process'
import { Agent, createServer, request } from 'node:http'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { fundedWallet, PRIVATE_KEY, TestPlatform, transferBody } from '../test/harness.ts'

/**
 * Requests a second of an authenticated GET and of POST /transaction, as a ratio to a bare node:http server
 * that answers the same load in the same run. Tokens are signed before the clock starts.
 */

const CONNECTIONS = 32
const GETS = 2000
const POSTS = 600

interface Prepared { method: string; path: string; headers: Record<string, string>; body: string }

/** Sends all requests over kept-alive connections; answers requests a second. */
async function fire(base: string, requests: readonly Prepared[]): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const { hostname, port } = new URL(base)
  let next = 0
  const one = (prepared: Prepared) => new Promise<void>((resolve, reject) => {
    const outgoing = request({ agent, hostname, port, method: prepared.method, path: prepared.path, headers: { ...prepared.headers, 'content-length': Buffer.byteLength(prepared.body) } }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += response.statusCode === 200 ? '' : chunk.toString()))
      response.on('end', () => (response.statusCode === 200 ? resolve() : reject(new Error(`${String(response.statusCode)} ${text}`))))
    })
    outgoing.on('error', reject)
    outgoing.end(prepared.body)
  })
  const started = performance.now()
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    for (let at = next++; at < requests.length; at = next++) await one(requests[at] as Prepared)
  }))
  agent.destroy()
  return requests.length / ((performance.now() - started) / 1000)
}

const platform = new TestPlatform()
const floor = createServer((incoming, outgoing) => {
  incoming.resume()
  incoming.on('end', () => {
    outgoing.setHeader('content-type', 'application/json')
    outgoing.end('{"ok":true}')
  })
})
try {
  await new Promise<void>((resolve) => floor.listen(0, '127.0.0.1', resolve))
  const floorPort = (floor.address() as { port: number }).port
  await platform.start({ CUSTODY_RATE_LIMIT: '1000000' })
  const user = await platform.user('bench', { rateLimit: 1_000_000 })
  await fundedWallet(platform, user, 'ETH', '100')
  const pinned = spawnSync('taskset', ['-cp', '0', String(platform.process?.pid)]).status === 0
  const prepare = async (method: string, path: string, body: (at: number) => string, count: number): Promise<Prepared[]> => Promise.all(Array.from({ length: count }, async (_, at) => {
    const signed = await signRequest({ apiKey: user.apiKey, privateKey: PRIVATE_KEY, method, uri: path, body: body(at) })
    return { method, path, headers: requestHeaders(signed, user.apiKey), body: signed.body }
  }))
  const bare = await fire(`http://127.0.0.1:${floorPort}`, Array.from({ length: GETS }, () => ({ method: 'GET', path: '/', headers: {}, body: '' })))
  const gets = await fire(platform.base, await prepare('GET', '/dac/v1/supported-assets', () => '', GETS))
  const posts = await fire(platform.base, await prepare('POST', '/dac/v1/transaction', (at) => transferBody('ETH', '0.0001', '0x00000000000000000000000000000000000000be', { sequence_id: `bench-${at}` }), POSTS))
  const show = (name: string, rate: number) => console.log(`${name.padEnd(34)} ${rate.toFixed(0).padStart(7)} /s   ${(rate / bare).toFixed(3)} of bare node:http`)
  console.log(pinned ? 'the platform process is pinned to one core' : 'the platform process is not pinned (taskset is missing)')
  show('bare node:http', bare)
  show('authenticated GET', gets)
  show('POST /transaction (workers running)', posts)
} finally {
  floor.close()
  await platform.remove()
}
