// A real node of the Core family with and without an index of transactions, with default options.
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { after, test } from 'node:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '../../../../testing/free-ports.ts'
import { nodeForTests } from '../../../../testing/real-nodes.ts'
import { waitFor } from '../../../../testing/wait-for.ts'
import { RpcUnavailable, UtxoClient, type Network } from '../index.ts'
import { local } from '../../testing/support.ts'

const { path: binary, skip } = nodeForTests('litecoind')
const home = mkdtempSync(join(tmpdir(), 'custody-litecoind-'))
const network = local.network('LTC') as Network
let running: ChildProcess | null = null

async function stop(): Promise<void> {
  if (running === null) return
  const child = running
  running = null
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await exit
}
after(async () => {
  await stop()
  rmSync(home, { recursive: true, force: true })
})

/** Starts the node; `index`: with an index of transactions, which it does not have by default. */
async function start(index: boolean) {
  await stop()
  const [port] = await freePorts(1)
  running = spawn(
    binary,
    [
      '-regtest',
      `-datadir=${home}`,
      `-rpcport=${port}`,
      '-rpcuser=u',
      '-rpcpassword=p',
      '-listen=0',
      '-dnsseed=0',
      ...(index ? ['-txindex=1'] : []),
    ],
    { stdio: 'ignore' },
  )
  const headers = { authorization: `Basic ${Buffer.from('u:p').toString('base64')}` }
  const call = async (method: string, ...params: unknown[]): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ id: 1, method, params }),
    })
    const { result, error } = (await response.json()) as { result: unknown; error: unknown }
    if (error) throw new Error(JSON.stringify(error))
    return result
  }
  const client = new UtxoClient(
    network,
    { url: `http://127.0.0.1:${port}/`, username: 'u', password: 'p' },
    fetch,
  )
  await waitFor('the node answers', () =>
    call('getblockcount').then(
      () => true,
      () => false,
    ),
  )
  return { call, client }
}

test(
  'a node without its index says so, and reports no transaction as absent',
  { skip },
  async () => {
    const { call, client } = await start(true)
    await call('createwallet', 'w')
    const [block] = (await call('generatetoaddress', 1, await call('getnewaddress'))) as [string]
    const { tx } = (await call('getblock', block)) as { tx: [string] }
    await waitFor('the index', async () => (await client.head()).lacks === null)
    const head = await client.head()
    const info = (await call('getblockheader', block)) as { time: number }
    assert.deepEqual(head, { height: 1, timeMs: info.time * 1000, lacks: null })
    assert.equal((await client.status(tx[0])).state, 'included')
    assert.equal((await client.status('ab'.repeat(32))).state, 'absent')

    const { client: without } = await start(false)
    assert.match(
      String((await without.head()).lacks),
      /^the node has no index of transactions: set txindex=1/,
    )
    for (const txid of [tx[0], 'ab'.repeat(32)])
      await assert.rejects(
        without.status(txid),
        (error) => error instanceof RpcUnavailable && /-txindex.*set txindex=1/.test(error.message),
      )
  },
)
