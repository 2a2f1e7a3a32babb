// A rehearsal on three endpoints of one private chain of geth of which two must agree, while one of them
// begins at the first block or states what is not so.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { parseEther } from 'viem'
import { GethChain } from '../../devnet/testing/geth.ts'
import { nodeForTests } from '../../../testing/real-nodes.ts'
import { ALLOC, CHAIN_ID, PAYEE, Rehearsal } from '../testing/rehearsal.ts'

const { path: binary, skip } = nodeForTests('geth')
const rehearsal = new Rehearsal()
let chain: GethChain
let liar: Server | null = null

/** Statements about transactions and accounts that could end a payment. */
const LIES: Record<string, (result: unknown) => unknown> = {
  eth_getTransactionReceipt: (result) => result && { ...result, status: '0x0' },
  eth_getBlockReceipts: (result) =>
    Array.isArray(result) ? result.map((each: object) => ({ ...each, status: '0x0' })) : result,
  eth_getTransactionByHash: () => null,
  eth_getTransactionCount: () => '0xffff',
  eth_getBalance: () => '0x0',
}
let lies = false

/** An endpoint that asks a node, and changes what it says while `lies` is set. */
async function startLiar(url: string): Promise<string> {
  liar = createServer((request, response) => {
    void (async () => {
      let text = ''
      for await (const part of request) text += String(part)
      const sent = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: text,
      })
      const answer: unknown = await sent.json()
      const asked = JSON.parse(text) as { id: unknown; method: string }[]
      const methods = new Map([asked].flat(1).map(({ id, method }) => [id, method]))
      const changed = [answer].flat().map((each) => {
        const { id, result } = each as { id: unknown; result?: unknown }
        const lie = lies && result !== undefined ? LIES[methods.get(id) ?? ''] : undefined
        return lie ? { ...(each as object), result: lie(result) } : each
      })
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(Array.isArray(answer) ? changed : changed[0]))
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => liar!.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(liar.address() as AddressInfo).port}`
}

before(async () => {
  if (skip !== false) return
  chain = await GethChain.start({ binary, chainId: CHAIN_ID, alloc: ALLOC, nodes: 2 })
  await chain.finalize(2)
  const [first, second] = chain.nodes
  await chain.mine(3)
  const url = await startLiar(first!.url)
  await rehearsal.start({
    ETH: { endpoints: [{ url }, { url: first!.url }, { url: second!.url }], quorum: 2 },
  })
})
after(async () => {
  await rehearsal.remove()
  liar?.close()
  await chain?.stop()
})

test(
  'a quorum credits and pays while one endpoint lies about every payment',
  { skip },
  async () => {
    const address = await rehearsal.newAddress('ETH')
    const tank = await rehearsal.platform.operator('gas-tank address', {
      workspace: 'alice',
      network: 'ETH',
    })
    lies = true
    await rehearsal.pay(chain, String(tank['address']), '1')
    await rehearsal.pay(chain, address, '5')
    await rehearsal.credited('ETH', '5', () => chain.mine())
    for (const total of ['1.5', '3']) {
      await rehearsal.confirmed(await rehearsal.send('ETH', '1.5', PAYEE), () => chain.mine())
      assert.equal(await rehearsal.received(chain), parseEther(total))
    }
    lies = false
  },
)

test('an endpoint that begins at the first block ends no payment', { skip }, async () => {
  const [, second] = chain.nodes
  const fresh = await GethChain.start({ binary, chainId: CHAIN_ID, alloc: ALLOC })
  try {
    assert.equal(await rehearsal.platform.stop(), 0)
    await rehearsal.start({ ETH: { endpoints: [{ url: fresh.first.url }, { url: second!.url }] } })
    const mine = () => chain.mine(1, second)
    await rehearsal.confirmed(await rehearsal.send('ETH', '0.5', PAYEE), mine)
    assert.equal(await rehearsal.received(chain), parseEther('3.5'))
  } finally {
    await fresh.stop()
  }
})
