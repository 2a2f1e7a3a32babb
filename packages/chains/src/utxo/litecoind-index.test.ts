// A real node of the Core family with and without an index of transactions, with default options.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CoreNode } from '../../../../testing/core-node.ts'
import { nodeForTests } from '../../../../testing/real-nodes.ts'
import { waitFor } from '../../../../testing/wait-for.ts'
import { RpcUnavailable, UtxoClient, type Network } from '../index.ts'
import { local } from '../../testing/support.ts'

const { path: binary, skip } = nodeForTests('litecoind')
const home = mkdtempSync(join(tmpdir(), 'custody-litecoind-'))
const network = local.network('LTC') as Network
let running: CoreNode | null = null

after(async () => {
  await running?.stop()
  rmSync(home, { recursive: true, force: true })
})

/** Starts the node; `index`: with an index of transactions, which it does not have by default. */
async function start(index: boolean): Promise<{ node: CoreNode; client: UtxoClient }> {
  await running?.stop()
  const node = await CoreNode.start(binary, home, index ? ['-txindex=1'] : [])
  running = node
  return {
    node,
    client: new UtxoClient(network, { url: node.url, ...node.credentials }, fetch),
  }
}

test(
  'a node without its index says so, and reports no transaction as absent',
  { skip },
  async () => {
    const { node, client } = await start(true)
    await node.call('createwallet', 'w')
    const [block] = await node.call<[string]>(
      'generatetoaddress',
      1,
      await node.call('getnewaddress'),
    )
    const { tx } = await node.call<{ tx: [string] }>('getblock', block)
    await waitFor('the index', async () => (await client.head()).lacks === null)
    const head = await client.head()
    const info = await node.call<{ time: number }>('getblockheader', block)
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
