import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from './devnet.ts'
import type { LocalChain } from './local-chain.ts'
import { toldTime } from './timing.ts'
import { momentOf, PastNode } from '../testing/past-node.ts'

/**
 * Tests of a node that stands at an earlier moment, and of endpoints with faults of their own, for one
 * chain of each family.
 */
const home = mkdtempSync(join(tmpdir(), 'past-node-'))
let now = Date.UTC(2030, 0, 1)
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => now })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

/** A request for the number of the newest block, by network. */
const HEAD: Record<string, { path: string; body: string | null }> = {
  BTC: { path: '/btc', body: '{"id":1,"method":"getblockcount"}' },
  ETH: { path: '/eth', body: '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}' },
  XRP: { path: '/xrp', body: '{"method":"server_info","params":[{}]}' },
  XLM: { path: '/xlm', body: '{"jsonrpc":"2.0","id":1,"method":"getLatestLedger"}' },
  TRX: { path: '/trx/wallet/getnowblock', body: '{}' },
  SOL: { path: '/sol', body: '{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[]}' },
  ADA: { path: '/ada/blocks/latest', body: null },
}
const chainOf = (code: string): LocalChain => {
  const chain = devnet.chains.find((each) => each.code === code)
  assert.ok(chain)
  return chain
}
const asked = (path: string, body: string | null) => ({
  method: body === null ? 'GET' : 'POST',
  url: path,
  headers: {},
  read: async () => body ?? '',
})
async function bodyOf(answer: Promise<unknown>): Promise<string> {
  const response = await answer
  assert.ok(typeof response === 'object' && response !== null && 'body' in response)
  return String(response.body)
}
const mine = async (chain: LocalChain, blocks: number) => {
  now += 60_000
  await chain.mine(blocks, { address: undefined, seconds: undefined })
}
const FAMILIES_OF_ONE_CHAIN = Object.keys(HEAD)

test('a past node of each family answers as its chain did, also after the chain has gone on', async () => {
  for (const code of FAMILIES_OF_ONE_CHAIN) {
    const { path, body } = HEAD[code]!
    const chain = chainOf(code)
    await chain.start()
    await mine(chain, 3)
    const moment = await momentOf(home, chain)
    const then = await bodyOf(devnet.answer(asked(path, body)))
    await mine(chain, 4)
    const node = await PastNode.open(code, moment, {
      source: home,
      home: join(home, `past-${code}`),
      timing: toldTime(() => now),
    })
    try {
      const answer = await bodyOf(node.answer(asked(path, body)))
      const facts = (text: string) => text.replace(/"(?:age|time|uptime)":"?\d+"?/g, '')
      if (code !== 'XRP') assert.equal(facts(answer), facts(then), code)
      assert.notEqual(answer, await bodyOf(devnet.answer(asked(path, body))), code)
      assert.equal(await node.waiting(), 0)
      const made = await node.mine(1)
      assert.notEqual(made.hash, (await chain.info()).head?.hash)
    } finally {
      node.close()
    }
    assert.ok((await chain.info()).head!.height > moment.height)
  }
})

test('faults of one endpoint do not concern the others of its chain', async () => {
  const chain = chainOf('BTC')
  const faults = chain.faults.another()
  const txid = await chain.fund({
    asset: 'BTC',
    address: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    amount: '1',
    tag: null,
    tokens: undefined,
    delivered: undefined,
  })
  const find = asked('/btc', `{"id":1,"method":"getrawtransaction","params":["${txid}",true]}`)
  const index = asked('/btc', '{"id":1,"method":"getindexinfo","params":["txindex"]}')
  const pool = asked('/btc', '{"id":1,"method":"getmempoolinfo","params":[]}')
  faults.set('no-index')
  assert.match(await bodyOf(devnet.answer(find, faults)), /still in the process of being indexed/)
  assert.match(await bodyOf(devnet.answer(index, faults)), /"synced":false/)
  assert.match(await bodyOf(devnet.answer(find)), /"confirmations":1/)
  faults.set('price')
  assert.match(await bodyOf(devnet.answer(pool, faults)), /"mempoolminfee":0.00012/)
  assert.doesNotMatch(await bodyOf(devnet.answer(pool)), /"mempoolminfee":0.00012/)
})

test('a node without fee estimates refuses the methods that tell a fee, and answers others', async () => {
  const faults = chainOf('ETH').faults.another()
  faults.set('no-estimate')
  const call = (method: string, ...params: unknown[]) =>
    bodyOf(
      devnet.answer(
        asked('/eth', JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })),
        faults,
      ),
    )
  assert.match(await call('eth_gasPrice'), /fee history is not available/)
  assert.match(await call('eth_feeHistory', '0x1', 'latest', []), /fee history is not available/)
  assert.match(await call('eth_blockNumber'), /"result"/)
})
