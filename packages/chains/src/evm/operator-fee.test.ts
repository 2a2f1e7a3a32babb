import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EvmClient, type Fetch, type Network } from '../index.ts'
import { local } from '../../testing/support.ts'

/**
 * The operator fee of OP Stack networks: Isthmus divides its scalar by a million, Jovian multiplies
 * it by a hundred.
 */
const OP = local.network('OP_ETH') as Network
const PRICE = 10n ** 9n
const GAS = 50_000n
const L1 = 7n
const SCALAR = 3_000_000n
const CONSTANT = 11n
const ISTHMUS = (GAS * SCALAR) / 1_000_000n + CONSTANT
const JOVIAN = GAS * SCALAR * 100n + CONSTANT
const hex = (value: bigint) => `0x${value.toString(16)}`
const word = (value: bigint) => `0x${value.toString(16).padStart(64, '0')}`
const receipt = {
  status: '0x1',
  gasUsed: hex(GAS),
  effectiveGasPrice: hex(PRICE),
  blockNumber: '0x9',
  blockHash: '0xb',
  l1Fee: hex(L1),
}
const terms = { operatorFeeScalar: hex(SCALAR), operatorFeeConstant: hex(CONSTANT) }
const jovian = { ...terms, daFootprintGasScalar: '0x190' }
const reverted = { error: { code: 3, message: 'execution reverted' } }
const pruned = { error: { code: -32000, message: 'missing trie node' } }

/** A client with responses by method. `calls`: data and block of each eth_call. */
function clientOf(
  answers: Record<string, object>,
  network = OP,
): { client: EvmClient; calls: [string, string][] } {
  const calls: [string, string][] = []
  const ask: Fetch = async (_url, init) => {
    const { method, params } = JSON.parse(String(init?.body)) as {
      method: string
      params: [{ data: string }, string]
    }
    if (method === 'eth_call') calls.push([params[0].data, params[1]])
    const answer = answers[method] ?? { error: { code: -32601, message: `no ${method}` } }
    return new Response(JSON.stringify({ jsonrpc: '2.0', id: 1, ...answer }))
  }
  return { client: new EvmClient(network, [], { url: 'http://op.test' }, ask), calls }
}
async function feeOf(shown: object, call: object): Promise<bigint> {
  const { client } = clientOf({
    eth_getTransactionReceipt: { result: { ...receipt, ...shown } },
    eth_call: call,
  })
  const status = await client.status('0xt')
  assert.ok(status.state === 'included')
  return (status.fee as bigint) - GAS * PRICE - L1
}

test('calculates the operator fee with the network’s contract at the block of the receipt', async () => {
  const feeTotal = ISTHMUS + 12_345n
  const { client, calls } = clientOf({
    eth_getTransactionReceipt: { result: { ...receipt, ...terms } },
    eth_call: { result: word(feeTotal) },
  })
  const status = await client.status('0xt')
  assert.ok(status.state === 'included' && status.fee === GAS * PRICE + L1 + feeTotal)
  assert.deepEqual(calls, [[`0x275aedd2${GAS.toString(16).padStart(64, '0')}`, '0x9']])
})

test('without a response of the contract, uses the fork that the receipt indicates', async () => {
  for (const silent of [reverted, pruned, { result: '0x' }]) {
    assert.equal(await feeOf(terms, silent), ISTHMUS, JSON.stringify(silent))
    assert.equal(await feeOf(jovian, silent), JOVIAN, JSON.stringify(silent))
  }
})

test('a receipt with no or zero operator fee costs nothing and sends no query', async () => {
  for (const shown of [
    {},
    { operatorFeeScalar: '0x0', operatorFeeConstant: '0x0' },
    { operatorFeeScalar: null },
  ]) {
    const { client, calls } = clientOf({
      eth_getTransactionReceipt: { result: { ...receipt, ...shown } },
    })
    const status = await client.status('0xt')
    assert.ok(status.state === 'included' && status.fee === GAS * PRICE + L1)
    assert.deepEqual(calls, [])
  }
})

test('a transfer costs the operator fee on its gas limit; oracles before Isthmus charge none', async () => {
  const { client, calls } = clientOf({ eth_call: { result: word(1000n) } })
  assert.equal(await client.operatorFee(60_000n, false), 1000n)
  assert.equal(await client.operatorFee(60_000n, true), 1500n)
  assert.deepEqual(calls[0], [`0x275aedd2${60_000n.toString(16).padStart(64, '0')}`, 'latest'])
  for (const older of [reverted, { result: '0x' }])
    assert.equal(await clientOf({ eth_call: older }).client.operatorFee(60_000n, true), 0n)
  await assert.rejects(clientOf({ eth_call: pruned }).client.operatorFee(60_000n, true), {
    code: 'RPC_UNAVAILABLE',
  })
  const { client: plain, calls: none } = clientOf(
    { eth_call: { result: word(1000n) } },
    local.network('ETH') as Network,
  )
  assert.equal(await plain.operatorFee(60_000n, true), 0n)
  assert.deepEqual(none, [])
})
