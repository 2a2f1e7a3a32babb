// Logs of several blocks in one request: fewer requests, and the same deposits as block by block.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bloomOf, TRANSFER_TOPIC } from './bloom.ts'
import { EvmClient } from '../index.ts'
import { ETH, ETH_ASSETS, USDT } from '../../testing/support.ts'

const A = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const B = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const word = (text: string) => `0x${text.replace('0x', '').toLowerCase().padStart(64, '0')}`
const hashAt = (height: number) => word(`b${height.toString(16).padStart(4, '0')}`)
const txAt = (height: number) => word(`c${height.toString(16).padStart(4, '0')}`)
const hex = (number: number) => `0x${number.toString(16)}`

const EMPTY_ROOT = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'

interface RecordedRequest {
  blockHash?: string
  fromBlock?: string
  toBlock?: string
}
type Logs = ReturnType<typeof logAt>[]
interface ScriptedNode {
  refuses?: boolean
  omits?: readonly number[]
  otherBranch?: boolean
  extra?: number
  isBloomless?: boolean
  quietFrom?: number
}

const logAt = (height: number, index = 0) => ({
  address: (USDT.contract_address as string).toLowerCase(),
  topics: [TRANSFER_TOPIC, word(A), word(B)],
  data: word((1000 + height).toString(16)),
  logIndex: hex(index),
  transactionHash: txAt(height),
  blockHash: hashAt(height),
  blockNumber: hex(height),
  removed: false,
})
const blockAt = (height: number, { isBloomless = false }: ScriptedNode) => ({
  number: hex(height),
  hash: hashAt(height),
  parentHash: hashAt(height - 1),
  transactionsRoot: word('9'),
  baseFeePerGas: '0x64',
  ...(isBloomless ? {} : { logsBloom: bloomOf([logAt(height)]) }),
  transactions: [
    {
      hash: txAt(height),
      from: A.toLowerCase(),
      to: USDT.contract_address,
      value: '0x0',
      blockHash: hashAt(height),
      gasPrice: '0x64',
    },
  ],
})

/** An endpoint with a token transfer in each block; it records the requested log filters. */
function endpoint(scripted: ScriptedNode = {}): {
  client: EvmClient
  requests: RecordedRequest[]
  methods: string[]
} {
  const requests: RecordedRequest[] = []
  const methods: string[] = []
  const logsOf = (where: RecordedRequest): Logs => {
    if (where.blockHash !== undefined) return [logAt(Number(BigInt(where.blockHash) & 0xfffn))]
    const logs: Logs = []
    for (let height = Number(where.fromBlock); height <= Number(where.toBlock); height++) {
      if (scripted.omits?.includes(height)) continue
      logs.push({ ...logAt(height), ...(scripted.otherBranch ? { blockHash: word('dead') } : {}) })
      for (let index = 1; index <= (scripted.extra ?? 0); index++) logs.push(logAt(height, index))
    }
    return logs
  }
  const client = new EvmClient(ETH, ETH_ASSETS, { url: 'http://node.test' }, async (_url, init) => {
    const {
      method,
      params: [first],
    } = JSON.parse(String(init.body)) as { method: string; params: [RecordedRequest & string] }
    methods.push(method)
    const respond = (result: unknown) => Response.json({ jsonrpc: '2.0', id: 1, result })
    if (method === 'eth_getBlockByNumber') {
      const isQuiet = Number(first) >= (scripted.quietFrom ?? Infinity)
      if (isQuiet)
        await new Promise((resolve) => {
          setImmediate(resolve)
        })
      return respond({
        ...blockAt(Number(first), scripted),
        ...(isQuiet
          ? { transactions: [], transactionsRoot: EMPTY_ROOT, logsBloom: bloomOf([]) }
          : {}),
      })
    }
    if (method === 'eth_getBlockReceipts') {
      const height = Number(BigInt(first) & 0xfffn)
      return respond([
        {
          transactionHash: txAt(height),
          blockHash: hashAt(height),
          blockNumber: hex(height),
          status: '0x1',
          gasUsed: '0x1',
          logs: [logAt(height)],
          logsBloom: bloomOf([logAt(height)]),
        },
      ])
    }
    assert.equal(method, 'eth_getLogs')
    requests.push(first)
    if (scripted.refuses && first.fromBlock !== undefined) {
      return Response.json({
        jsonrpc: '2.0',
        id: 1,
        error: { code: -32602, message: 'block range is limited to 5' },
      })
    }
    return respond(logsOf(first))
  })
  return { client, requests, methods }
}

const HEIGHTS = [1, 2, 3, 4, 5, 6, 7, 8]
const amounts = async (client: EvmClient, heights: readonly number[] = HEIGHTS) =>
  (await Promise.all(heights.map((height) => client.block(height)))).map((block) =>
    block?.transfers.map(({ amount }) => Number(amount)),
  )
const EXPECTED = HEIGHTS.map((height) => [1000 + height])
const byHash = (requests: readonly RecordedRequest[]) =>
  requests.filter(({ blockHash }) => blockHash !== undefined).length

test('blocks read concurrently share one request for logs, with the same result as one by one', async () => {
  const { client, requests, methods } = endpoint()
  assert.deepEqual(await amounts(client), EXPECTED)
  assert.deepEqual(
    requests.map(({ fromBlock, toBlock }) => [fromBlock, toBlock]),
    [['0x1', '0x8']],
  )
  assert.equal(methods.length, HEIGHTS.length + 1)
  // The logs of a single block are requested by its hash, immediately.
  assert.deepEqual(await amounts(client, [9]), [[1009]])
  assert.deepEqual(requests.at(-1)?.blockHash, hashAt(9))
})

test('a log request covers at most ten blocks, and ends at a gap', async () => {
  const { client, requests } = endpoint()
  const heights = Array.from({ length: 25 }, (_, at) => at + 1)
  assert.deepEqual(
    await amounts(client, heights),
    heights.map((height) => [1000 + height]),
  )
  assert.ok(
    requests.every(({ fromBlock, toBlock }) => Number(toBlock) - Number(fromBlock) < 10),
    JSON.stringify(requests),
  )
  const other = endpoint()
  assert.deepEqual(await amounts(other.client, [1, 2, 5, 6]), [[1001], [1002], [1005], [1006]])
  assert.deepEqual(
    other.requests.map(({ fromBlock, toBlock }) => [fromBlock, toBlock]),
    [
      ['0x1', '0x2'],
      ['0x5', '0x6'],
    ],
  )
})

test('after an endpoint refuses ranges, logs are requested block by block', async () => {
  const { client, requests } = endpoint({ refuses: true })
  for (let round = 0; round < 3; round++) assert.deepEqual(await amounts(client), EXPECTED)
  assert.equal(requests.filter(({ fromBlock }) => fromBlock !== undefined).length, 1)
  assert.equal(byHash(requests), 3 * HEIGHTS.length)
})

for (const [what, node] of [
  ['logs of another branch', { otherBranch: true }],
  ['as many logs as an answer may be cut at', { extra: 120 }],
  ['blocks without a bloom', { isBloomless: true }],
] as const) {
  test(`given ${what}, the logs of each block are requested by block hash`, async () => {
    const { client, requests } = endpoint(node)
    assert.deepEqual(await amounts(client), EXPECTED)
    assert.equal(byHash(requests), HEIGHTS.length)
  })
}

test('after a possibly truncated response, log requests cover shorter ranges', async () => {
  const { client, requests } = endpoint({ extra: 120 })
  for (let round = 0; round < 4; round++) {
    assert.deepEqual(
      (await amounts(client)).map((each) => each?.slice(0, 1)),
      EXPECTED,
    )
  }
  assert.equal(byHash(requests), HEIGHTS.length)
  assert.ok(requests.length - byHash(requests) <= 10, JSON.stringify(requests))
})

test('reads receipts and finds the deposit if a lagging endpoint omits a block of the range', async () => {
  const { client, methods } = endpoint({ omits: [3, 7, 8] })
  assert.deepEqual(await amounts(client), EXPECTED)
  assert.equal(methods.filter((method) => method === 'eth_getBlockReceipts').length, 3)
})

test('a rescan of many blocks without logs does not delay other requests for logs', async () => {
  const { client, requests } = endpoint({ quietFrom: 100 })
  let isOver = false
  let read = 0
  const rescan = async (from: number) => {
    for (let height = from; !isOver && read < 2000; height++, read++) await client.block(height)
  }
  const rescans = Promise.all([100, 10_000, 20_000].map(rescan))
  const blocks = await amounts(client, [1, 2])
  isOver = true
  await rescans
  assert.deepEqual(blocks, [[1001], [1002]])
  assert.equal(requests.length, 1)
  assert.ok(read < 2000, 'the logs were requests for only when nothing was read any more')
})
