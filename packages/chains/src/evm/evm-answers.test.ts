// Responses of EVM endpoints that contradict themselves or lack a field: they are never read as an
// empty block, and never cause an error without a reason.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bloomOf, TRANSFER_TOPIC } from './bloom.ts'
import { ChainError, EvmClient, RpcUnavailable, type ExpectedTransfer } from '../index.ts'
import { ETH, ETH_ASSETS, USDT } from '../../testing/support.ts'

const A = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const B = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const word = (address: string) => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
const hash = (digit: string) => `0x${digit.repeat(64)}`
const [PARENT, BLOCK, OTHER, NATIVE, TOKEN] = ['0', '1', '2', '3', '4'].map(hash) as [
  string,
  string,
  string,
  string,
  string,
]
const NOT_SERVED = { error: { code: -32601, message: 'the method does not exist' } }

type Script = Record<string, unknown>

const log = () => ({
  address: (USDT.contract_address as string).toLowerCase(),
  topics: [TRANSFER_TOPIC, word(A), word(B)],
  data: `0x${(25_000_000).toString(16).padStart(64, '0')}`,
  logIndex: '0x0',
  transactionHash: TOKEN,
  blockHash: BLOCK,
  blockNumber: '0x7',
  removed: false,
})
const receipts = () => [
  {
    transactionHash: NATIVE,
    status: '0x1',
    gasUsed: '0x5208',
    effectiveGasPrice: '0x3b9aca00',
    blockNumber: '0x7',
    blockHash: BLOCK,
    logs: [],
    logsBloom: bloomOf([]),
  },
  {
    transactionHash: TOKEN,
    status: '0x1',
    gasUsed: '0xfde8',
    effectiveGasPrice: '0x3b9aca00',
    blockNumber: '0x7',
    blockHash: BLOCK,
    logs: [log()],
    logsBloom: bloomOf([log()]),
  },
]
const block = () => ({
  number: '0x7',
  hash: BLOCK,
  parentHash: PARENT,
  logsBloom: bloomOf([log()]),
  baseFeePerGas: '0x64',
  transactionsRoot: hash('9'),
  transactions: [
    {
      hash: NATIVE,
      from: A.toLowerCase(),
      to: B.toLowerCase(),
      value: '0xde0b6b3a7640000',
      blockHash: BLOCK,
      gasPrice: '0x3b9aca00',
    },
    {
      hash: TOKEN,
      from: A.toLowerCase(),
      to: USDT.contract_address,
      value: '0x0',
      blockHash: BLOCK,
      gasPrice: '0x3b9aca00',
    },
  ],
})

/**
 * An endpoint with responses by method; a function receives the parameters. `calls`: the methods
 * that were called.
 */
function endpoint(script: Script): { client: EvmClient; calls: string[] } {
  const calls: string[] = []
  const all: Script = {
    eth_getBlockByNumber: block(),
    eth_getBlockTransactionCountByHash: '0x2',
    eth_getLogs: [log()],
    eth_getBlockReceipts: receipts(),
    eth_getTransactionReceipt: ([txid]: [string]) =>
      receipts().find(({ transactionHash }) => transactionHash === txid) ?? null,
    ...script,
  }
  const client = new EvmClient(ETH, ETH_ASSETS, { url: 'http://node.test' }, async (_url, init) => {
    const { method, params } = JSON.parse(String(init.body)) as {
      method: string
      params: unknown[]
    }
    calls.push(method)
    const reply = all[method] ?? (method in all ? null : NOT_SERVED)
    const answer =
      typeof reply === 'function' ? (reply as (params: unknown[]) => unknown)(params) : reply
    const refused = typeof answer === 'object' && answer !== null && 'error' in answer
    return Response.json({ jsonrpc: '2.0', id: 1, ...(refused ? answer : { result: answer }) })
  })
  return { client, calls }
}

const seen = async (script: Script) =>
  (await endpoint(script).client.block(7))?.transfers.map(({ txid, asset, amount }) => [
    txid,
    asset,
    amount,
  ])
const BOTH = [
  [NATIVE, 'ETH', 10n ** 18n],
  [TOKEN, 'USDT_ETH', 25_000_000n],
]

async function unavailable(promise: Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof RpcUnavailable, String(error))
    assert.match(error.message, message)
    return true
  })
}

test('finds a token deposit if logs are empty and receipts are available only one by one', async () => {
  const { client, calls } = endpoint({ eth_getLogs: [], eth_getBlockReceipts: NOT_SERVED })
  assert.deepEqual(
    (await client.block(7))?.transfers.map(({ txid, asset, amount }) => [txid, asset, amount]),
    BOTH,
  )
  assert.deepEqual(calls.filter((method) => method === 'eth_getTransactionReceipt').length, 2)
  await unavailable(
    seen({ eth_getLogs: [], eth_getBlockReceipts: NOT_SERVED, eth_getTransactionReceipt: null }),
    /eth_getTransactionReceipt does not return/,
  )
})

test('reads a block in another way if the endpoint refuses an optional method with any error', async () => {
  for (const code of [-32_601, -32_000, -32_603, 3]) {
    const refused = { error: { code, message: 'method handler crashed' } }
    const { client } = endpoint({ eth_getLogs: [], eth_getBlockReceipts: refused })
    assert.deepEqual(
      (await client.block(7))?.transfers.map(({ txid, asset, amount }) => [txid, asset, amount]),
      BOTH,
      String(code),
    )
    const empty = { ...block(), transactions: [], logsBloom: bloomOf([]) }
    const counted = (receipts: unknown[]) =>
      seen({
        eth_getBlockByNumber: empty,
        eth_getBlockTransactionCountByHash: refused,
        eth_getBlockReceipts: receipts,
      })
    assert.deepEqual(await counted([]), [])
    if (code !== -32_601) await unavailable(counted([{}]), /returned .* without its transactions/)
  }
})

test('a node that still indexes its blocks does not report a transaction as absent', async () => {
  const indexing = { error: { code: -32_000, message: 'transaction indexing is in progress' } }
  for (const script of [
    { eth_getTransactionReceipt: indexing },
    { eth_getTransactionReceipt: () => null, eth_getTransactionByHash: indexing },
  ])
    await assert.rejects(endpoint(script).client.status(`0x${'ab'.repeat(32)}`), /is in progress/)
})

test('logs of another block make the block unavailable until the next valid response', async () => {
  assert.deepEqual(await seen({}), BOTH)
  const cases: [object | object[], RegExp][] = [
    [{ ...log(), blockHash: OTHER }, /logs of another block/],
    [{ ...log(), blockHash: null }, /logs of another block/],
    [{ ...log(), blockHash: undefined }, /logs of another block/],
    [{ ...log(), blockNumber: '0x8' }, /another blockNumber/],
    [{ ...log(), transactionHash: OTHER }, /does not report 0x2+ in the block 0x1+/],
    [{ ...log(), removed: true }, /that is removed/],
    [{ ...log(), removed: true, blockHash: OTHER }, /logs of another block/],
    [[log(), log()], /logIndex 0 twice/],
  ]
  for (const [answer, message] of cases) {
    const logs = Array.isArray(answer) ? answer : [answer]
    await unavailable(seen({ eth_getLogs: logs }), message)
    // The content of receipts is checked in the same way.
    const altered = receipts().map((receipt) =>
      receipt.logs.length === 0 ? receipt : { ...receipt, logs },
    )
    await unavailable(
      seen({ eth_getLogs: [], eth_getBlockReceipts: altered }),
      /eth_getBlockReceipts returned|the receipts of|does not report/,
    )
  }
  // A transaction of an unknown type, which the endpoint does not list but reports as part of the
  // block.
  const stranger = {
    transactionHash: OTHER,
    status: '0x1',
    gasUsed: '0x0',
    blockNumber: '0x7',
    blockHash: BLOCK,
  }
  assert.deepEqual(
    (
      await seen({
        eth_getLogs: [log(), { ...log(), logIndex: '0x1', transactionHash: OTHER }],
        eth_getTransactionReceipt: stranger,
      })
    )?.map(([txid]) => txid),
    [NATIVE, TOKEN, OTHER],
  )
  for (const logs of [null, {}, 'x'])
    await unavailable(seen({ eth_getLogs: logs }), /ETH: eth_getLogs returned/)
  let requestCount = 0
  assert.deepEqual(await seen({ eth_getLogs: () => (requestCount++ === 0 ? [log()] : []) }), BOTH)
})

test('treats a block that contradicts the request or itself as unavailable', async () => {
  const [native, token] = block().transactions
  const cases: [object, RegExp][] = [
    [{ number: '0x8' }, /another height/],
    [{ number: null }, /returned (?:.* without|no) number/],
    [{ number: undefined }, /returned (?:.* without|no) number/],
    [{ hash: null }, /returned (?:.* without|no) hash/],
    [{ parentHash: undefined }, /returned (?:.* without|no) parentHash/],
    [{ parentHash: BLOCK }, /its own parent/],
    [{ transactions: null }, /(?:returned no|without its) transactions/],
    [{ transactions: [NATIVE, TOKEN] }, /no transactions.hash/],
    [{ transactions: [native, { ...token, blockHash: OTHER }] }, /of another block/],
    [{ transactions: [native, native] }, /twice/],
    [{ transactions: [{ ...native, value: undefined }, token] }, /no transactions.value/],
    [{ transactions: [{ ...native, to: undefined }, token] }, /no transactions.to/],
    // Omitted transactions: the root shows that there are some, and the endpoint's count includes
    // them.
    [{ transactions: [], logsBloom: bloomOf([]) }, /without its transactions/],
  ]
  for (const [more, message] of cases) {
    await unavailable(
      seen({
        eth_getBlockByNumber: { ...block(), ...more },
        eth_getBlockTransactionCountByHash: '0x2',
      }),
      message,
    )
  }
  // A root of other content than transactions: nothing was omitted, or the endpoint cannot report
  // the number.
  for (const count of ['0x0', NOT_SERVED]) {
    assert.deepEqual(
      await seen({
        eth_getBlockByNumber: { ...block(), transactions: [], logsBloom: bloomOf([]) },
        eth_getBlockTransactionCountByHash: count,
      }),
      [],
    )
  }
  // No transactions, but the bloom filter contains a transfer.
  await unavailable(
    seen({
      eth_getBlockByNumber: { ...block(), transactions: [], transactionsRoot: undefined },
      eth_getLogs: [],
      eth_getBlockReceipts: [],
    }),
    /bloom filter/,
  )
  const fields: [object, RegExp][] = [
    [{ number: null }, /returned (?:.* without|no) number/],
    [{ hash: null }, /returned (?:.* without|no) hash/],
  ]
  for (const [more, message] of fields)
    await unavailable(
      endpoint({ eth_getBlockByNumber: { ...block(), ...more } }).client.tip(),
      message,
    )
})

test("takes the gas price from the transaction if the receipt's price is missing or zero", async () => {
  const [, receipt] = receipts() as [object, object]
  const status = (effectiveGasPrice: unknown, transaction: unknown, more: Script = {}) =>
    endpoint({
      eth_getTransactionReceipt: { ...receipt, effectiveGasPrice },
      eth_getTransactionByHash: transaction,
      ...more,
    }).client.status(TOKEN)
  const feeOf = async (...o: Parameters<typeof status>) => {
    const result = await status(...o)
    return result.state === 'included' ? result.fee : null
  }
  for (const missing of [undefined, null, '0x0', '0x', 0, 'x']) {
    assert.equal(await feeOf(missing, { gasPrice: '0x7' }), 65_000n * 7n)
    // Gas price according to EIP-1559: the base fee of the block plus the tip, at most the signed
    // maximum.
    const dynamic = { gasPrice: missing, maxFeePerGas: '0xc8', maxPriorityFeePerGas: '0x5' }
    assert.equal(await feeOf(missing, dynamic, { eth_getBlockByHash: block() }), 65_000n * 105n)
    assert.equal(
      await feeOf(missing, { ...dynamic, maxFeePerGas: '0x66' }, { eth_getBlockByHash: block() }),
      65_000n * 102n,
    )
    await unavailable(
      status(missing, dynamic, { eth_getBlockByHash: { ...block(), baseFeePerGas: null } }),
      /ETH: eth_getBlockByHash returned no baseFeePerGas/,
    )
    await unavailable(status(missing, {}), /ETH: eth_getTransactionByHash returned no gasPrice/)
    await unavailable(status(missing, null), /ETH: eth_getTransactionByHash does not return/)
  }
  // A network without a gas price.
  assert.equal(await feeOf('0x0', { gasPrice: '0x0' }), 0n)
})

/** Yields the path of every value in a response. */
function* places(value: unknown, path: (string | number)[] = []): Generator<(string | number)[]> {
  if (path.length > 0) yield path
  if (typeof value === 'object' && value !== null)
    for (const key of Object.keys(value))
      yield* places((value as Script)[key], [...path, Array.isArray(value) ? Number(key) : key])
}
function changed(value: unknown, path: readonly (string | number)[], to: unknown): unknown {
  const copy = structuredClone(value) as Script
  let at: Script = copy
  for (const key of path.slice(0, -1)) at = at[key] as Script
  at[path.at(-1) as string] = to
  return copy
}

test('if any field of a block is missing or invalid, it is read or the error names the field', async () => {
  for (const [method, honest] of [
    ['eth_getBlockByNumber', block()],
    ['eth_getLogs', [log()]],
  ] as const) {
    for (const path of places(honest)) {
      for (const to of [undefined, null, 'x', {}, [], 5, true]) {
        // A null `to` is valid: a contract was created.
        if (path.at(-1) === 'to' && to === null) continue
        const what = `${method} ${path.join('.')} ${JSON.stringify(to)}`
        try {
          assert.deepEqual(await seen({ [method]: changed(honest, path, to) }), BOTH, what)
        } catch (error) {
          assert.ok(error instanceof RpcUnavailable, `${what}: ${String(error)}`)
          assert.match(error.message, /^ETH: (?:eth_\w+ |the receipts of )/, what)
        }
      }
    }
  }
})

test("a native deposit depends only on the receipt's block and its success", async () => {
  const [honest] = receipts() as [object]
  const whole = { state: 'included', height: 7, blockHash: BLOCK, succeeded: true, fee: null }
  const expected: ExpectedTransfer | undefined = undefined
  for (const path of places(honest)) {
    for (const to of [undefined, null, 'x', {}, [], 5, true]) {
      const what = `${path.join('.')} ${JSON.stringify(to)}`
      try {
        const result = await endpoint({
          eth_getTransactionReceipt: changed(honest, path, to),
        }).client.status(NATIVE, expected, { fee: false })
        // Another text is another block, which the scan detects.
        assert.deepEqual(
          path.at(-1) === 'blockHash' ? { ...result, blockHash: BLOCK } : result,
          whole,
          what,
        )
      } catch (error) {
        assert.ok(error instanceof ChainError, `${what}: ${String(error)}`)
        assert.match(error.message, /^ETH: eth_getTransactionReceipt returned/, what)
        assert.ok(
          ['status', 'blockNumber', 'blockHash', 'transactionHash'].includes(String(path[0])),
          `${what} is not needed: ${error.message}`,
        )
      }
    }
  }
})

test('reports missing optional fields, and fails if a required field is missing', async () => {
  assert.deepEqual(await endpoint({}).client.limits(), [])
  assert.deepEqual(
    await endpoint({
      eth_getBlockByNumber: { ...block(), logsBloom: null },
      eth_getBlockReceipts: NOT_SERVED,
      eth_getTransactionReceipt: { ...receipts()[0], effectiveGasPrice: undefined },
    }).client.limits(),
    [
      'eth_getBlockByNumber returns no logsBloom: missing logs are not detected',
      'eth_getTransactionReceipt returns no effectiveGasPrice: fees are read from the transaction',
      'eth_getBlockReceipts is not served: receipts are read one by one',
    ],
  )
  await unavailable(
    endpoint({ eth_getBlockByNumber: { ...block(), parentHash: null } }).client.limits(),
    /^ETH: eth_getBlockByNumber returned no parentHash$/,
  )
})
