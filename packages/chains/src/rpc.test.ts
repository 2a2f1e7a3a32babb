// Clients of nodes: a response is parsed exactly, or causes a specific error.
import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { keccak256 } from 'viem/utils'
import { bloomOf, mayTellOfTransfer } from './evm/bloom.ts'
import {
  ChainError,
  EvmClient,
  jsonRpc,
  RpcRefused,
  RpcReverted,
  RpcUnavailable,
  UtxoClient,
} from './index.ts'
import { addressOf, BTC, ETH, ETH_ASSETS, USDT } from '../testing/support.ts'

interface Call {
  method: string
  params: unknown[]
}
type Answer =
  | { result?: unknown; error?: { code: number; message: string } | null }
  | { raw: string; status?: number; headers?: Record<string, string> }
  | 'hang'
  | 'cut'

let server: Server
let answer: (call: Call) => Answer
let calls: Call[] = []
let headers: IncomingHttpHeaders = {}

before(async () => {
  server = createServer((request, response) => {
    void (async () => {
      let text = ''
      for await (const part of request) text += String(part)
      headers = request.headers
      const call = JSON.parse(text) as Call
      calls.push(call)
      const reply = answer(call)
      if (reply === 'hang') return
      if (reply === 'cut') request.socket.destroy()
      else if ('raw' in reply) response.writeHead(reply.status ?? 200, reply.headers).end(reply.raw)
      else
        response
          .writeHead(reply.error ? 500 : 200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...reply }))
    })()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
})
after(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  calls = []
})

const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/key-in-path-4711`
const quick = (input: string, init: RequestInit) =>
  fetch(input, { ...init, signal: AbortSignal.timeout(150) })
const call = (method = 'test') => jsonRpc({ url: url() }, fetch)(method, [])
const btc = () =>
  new UtxoClient(BTC, { url: url(), username: 'user', password: 'pass:word' }, fetch)
const eth = () => new EvmClient(ETH, ETH_ASSETS, { url: url() }, fetch)
/** Responses by method; a JSON text is sent unchanged. */
const script = (answers: Record<string, unknown>) => {
  answer = ({ method }) => {
    const reply = answers[method]
    if (reply === undefined) return { error: { code: -32601, message: `no ${method}` } }
    return typeof reply === 'string' && reply.startsWith('RAW')
      ? { raw: `{"result":${reply.slice(3)},"error":null,"id":1}` }
      : { result: reply }
  }
}
const refuse = (code: number, message: string) => {
  answer = () => ({ error: { code, message } })
}

async function unavailable(promise: Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof RpcUnavailable, String(error))
    assert.equal(error.code, 'RPC_UNAVAILABLE')
    assert.match(error.message, message)
    assert.doesNotMatch(error.message, /key-in-path/, 'a provider key must not reach a log')
    return true
  })
}

test('treats a response that is not JSON-RPC as unavailable', async () => {
  for (const [raw, status] of [
    ['<html>502 Bad Gateway</html>', 502],
    ['', 200],
    ['', 401],
    ['{"result":1', 200],
    ['null', 200],
    ['[]', 200],
    ['7', 200],
    ['"text"', 200],
    ['{}', 200],
    ['{"id":1}', 200],
  ] as const) {
    answer = () => ({ raw, status })
    await unavailable(call(), /not JSON/)
  }
})

test('reports a time-out, a closed connection, and an unreachable endpoint', async () => {
  answer = () => 'hang'
  await unavailable(jsonRpc({ url: url() }, quick)('test', []), /no response within/)
  answer = () => 'cut'
  await unavailable(call(), /cannot be reached/)
  await unavailable(
    jsonRpc({ url: 'http://127.0.0.1:1/key-in-path' }, fetch)('test', []),
    /cannot be reached/,
  )
})

test('does not follow a redirect, which could lead to another chain', async () => {
  answer = () => ({ raw: '', status: 307, headers: { location: '/elsewhere' } })
  await unavailable(call(), /cannot be reached/)
  assert.equal(calls.length, 1)
})

test('aborts an endless response without storing it', async () => {
  let pulled = 0
  const piece = new Uint8Array(16 * 1024 * 1024).fill(0x20)
  const endless = new ReadableStream({
    pull(controller) {
      if (++pulled > 64) controller.close()
      else controller.enqueue(piece)
    },
  })
  await unavailable(
    jsonRpc({ url: url() }, async () => new Response(endless))('test', []),
    /too large/,
  )
  assert.ok(pulled < 24, `${pulled} pieces were read`)
})

test("keeps the code of a node's error and truncates its text", async () => {
  refuse(-26, `min relay fee not met ${'x'.repeat(1000)}`)
  await assert.rejects(call(), (error: unknown) => {
    assert.ok(error instanceof RpcRefused)
    assert.equal(error.rpcCode, -26)
    assert.ok(error.message.length <= 300)
    return true
  })
})

test('a response with an HTTP error is unavailable even if its body is a JSON-RPC error', async () => {
  const raw = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32000, message: 'over capacity' },
  })
  for (const status of [401, 402, 403, 408, 425, 429, 501, 502, 503, 504, 529]) {
    answer = () => ({ raw, status })
    await unavailable(call(), new RegExp(`HTTP status ${status}`))
  }
  // Bitcoin Core sends its own errors with status 404 and 500.
  for (const status of [200, 400, 404, 500]) {
    answer = () => ({ raw, status })
    await assert.rejects(
      call(),
      (error: unknown) => error instanceof RpcRefused && error.rpcCode === -32000,
    )
  }
  for (const code of [-32005, 429]) {
    refuse(code, 'limit exceeded')
    await unavailable(call(), /limit exceeded/)
  }
})

test('ETH: a gas estimate is refused only if the call failed; other errors are unavailability', async () => {
  const ask = () =>
    eth().gasLimit({
      asset: ETH_ASSETS[0]!,
      from: addressOf(ETH, [1, 2, 0]),
      to: addressOf(ETH, [1, 2, 1]),
      amount: 1n,
    })
  // Spellings of go-ethereum, Erigon, Nethermind, Besu, OpenEthereum, Arbitrum and of providers.
  const proofs: [number, string][] = [
    [3, 'execution reverted'],
    [3, 'rate limit of this token'],
    [-32000, 'execution reverted: transfer limit exceeded'],
    [-32000, 'Execution reverted'],
    [-32015, 'VM execution error: Reverted 0x'],
    [-32603, 'failed to estimate gas: execution reverted'],
    [-32000, 'gas required exceeds allowance (21000)'],
    [-32000, 'insufficient funds for gas * price + value: address 0x11 have 0 want 1'],
    [-32000, 'insufficient balance for transfer'],
    [-32000, 'invalid opcode: INVALID'],
    [-32000, 'out of gas'],
    [-32000, 'gas required exceeds allowance or always failing transaction'],
  ]
  for (const [code, message] of proofs) {
    refuse(code, message)
    await assert.rejects(
      ask(),
      (error: unknown) => error instanceof RpcReverted && error.message === message,
      message,
    )
  }
  const troubles: [number, string][] = [
    [-32000, 'header not found'],
    [-32000, 'missing trie node 5e (path ) <nil>'],
    [-32000, 'execution aborted (timeout = 5s)'],
    [-32603, 'Internal error'],
    [-32000, 'request timed out'],
    [-32016, 'too many requests'],
    [-32601, 'the method is not available'],
    [-32602, 'block reverted: state is pruned'],
    [-32000, 'You have used all credits, your project is out of gas'],
    [0, ''],
    [-32029, 'Too Many Requests'],
    [-32000, 'no backends available for method'],
    [-32000, 'nonce too low'],
  ]
  for (const [code, message] of troubles) {
    refuse(code, message)
    await unavailable(ask(), /eth_estimateGas/)
  }
})

test('ETH: fails if the priority fee cannot be read, instead of guessing it', async () => {
  const history = { baseFeePerGas: ['0x5'], reward: [] }
  script({ eth_feeHistory: history })
  assert.equal(
    (await eth().feeRates()).low.maxPriorityFeePerGas,
    1n,
    'a node that does not know the method',
  )
  answer = ({ method }) =>
    method === 'eth_feeHistory' ? { result: history } : { raw: '', status: 503 }
  await unavailable(eth().feeRates(), /eth_maxPriorityFeePerGas/)
})

test('accepts a result of null as a response', async () => {
  answer = () => ({ result: null, error: null })
  assert.equal(await call(), null)
})

test('sends credentials with Basic authentication, and headers unchanged', async () => {
  script({ getblockhash: BTC.genesis })
  await btc().probe()
  assert.equal(headers.authorization, `Basic ${Buffer.from('user:pass:word').toString('base64')}`)
  answer = () => ({ result: 1 })
  await jsonRpc({ url: url(), headers: { 'x-token': 't' } }, fetch)('test', [])
  assert.equal(headers['x-token'], 't')
})

test('refuses a node of another network', async () => {
  script({ getblockhash: '00'.repeat(32), eth_chainId: '0x1' })
  for (const client of [btc(), eth()])
    await assert.rejects(client.probe(), { name: 'ChainError', code: 'WRONG_NETWORK' })
  script({ getblockhash: BTC.genesis, eth_chainId: `0x${(ETH.chain_id as number).toString(16)}` })
  for (const client of [btc(), eth()]) await client.probe()
})

test('BTC: parses values from the response text, exact to the satoshi', async () => {
  const own = addressOf(BTC, [1, 0, 0])
  const { utxo } = await import('./index.ts')
  const script22 = Buffer.from(utxo.scriptOf(BTC, own)).toString('hex')
  const texts = [
    '0.1',
    '0.2',
    '0.30000000',
    '20999999.9769',
    '1e-8',
    '0.00000001',
    '12345678.87654321',
    '0',
    '1E+2',
  ]
  const satoshi = [
    10_000_000n,
    20_000_000n,
    30_000_000n,
    2_099_999_997_690_000n,
    1n,
    1n,
    1_234_567_887_654_321n,
    10_000_000_000n,
  ]
  const outs = texts.map(
    (value, n) => `{"value":${value},"n":${n},"scriptPubKey":{"hex":"${script22}"}}`,
  )
  script({
    getblockhash: 'aa',
    getblock: `RAW{"hash":"aa","height":7,"previousblockhash":"bb","tx":[{"txid":"t1","vin":[{"coinbase":"00"}],"vout":[${outs.join(',')},{"value":5,"n":99,"scriptPubKey":{"hex":"6a0101"}}]},{"txid":"t2","vin":[{"txid":"x","vout":0}],"vout":[]}]}`,
  })
  const block = await btc().block(7)
  assert.deepEqual(
    block?.transfers.map((each) => each.amount),
    satoshi,
  )
  assert.ok(
    block?.transfers.every((each) => each.address === own && each.coinbase && each.asset === 'BTC'),
  )
  assert.deepEqual([block?.hash, block?.parent, block?.txids], ['aa', 'bb', ['t1', 't2']])
  script({ gettxout: 'RAW{"value":0.07000001}' })
  assert.equal(await btc().unspent('t', 0), 7_000_001n)
  script({ gettxout: null })
  assert.equal(await btc().unspent('t', 0), null)
})

test('BTC: refuses a value with too many decimals', async () => {
  script({ gettxout: 'RAW{"value":0.000000001}' })
  await unavailable(btc().unspent('t', 0), /not JSON/)
})

test('BTC: fee rates are exact, increase with the level and are not below the minimum', async () => {
  const rates: Record<number, string> = { 24: '0.00001', 6: '0.00012345', 2: '0.0001' }
  answer = ({ params }) => ({
    raw: `{"result":{"feerate":${rates[params[0] as number]}},"error":null}`,
  })
  assert.deepEqual(await btc().feeRates(), { low: 1000n, medium: 12_345n, high: 12_345n })
  answer = () => ({ result: { errors: ['Insufficient data'], blocks: 2 } })
  await unavailable(
    btc().feeRates(),
    /^BTC: the node has no estimate of fee rates now, .* set fee_rate, or set fee_floors/,
  )
})

test('BTC: refuses a block of another height', async () => {
  script({ getblockhash: 'aa', getblock: { hash: 'aa', height: 8, tx: [] } })
  await unavailable(btc().block(7), /another height/)
})

test('BTC: a transaction is absent only if the node reports it; other errors prove nothing', async () => {
  refuse(
    -5,
    'No such mempool or blockchain transaction. Use gettransaction for wallet transactions.',
  )
  assert.deepEqual(await btc().status('t'), { state: 'absent' })
  refuse(-8, 'Block height out of range')
  assert.equal(await btc().block(10 ** 6), null)
  for (const [code, message] of [
    [-28, 'Loading block index…'],
    [-1, 'Work queue depth exceeded'],
    [-32603, 'internal error'],
  ] as const) {
    refuse(code, message)
    await assert.rejects(btc().status('t'), RpcRefused, message)
    await assert.rejects(btc().block(1), RpcRefused, message)
  }
  refuse(429, 'rate limited')
  for (const read of [btc().status('t'), btc().block(1)]) await unavailable(read, /rate limited/)
})

test('BTC: the status changes from mempool to block, and back after a reorganisation', async () => {
  script({ getrawtransaction: {} })
  assert.deepEqual(await btc().status('t'), { state: 'mempool' })
  script({
    getrawtransaction: { blockhash: 'aa', confirmations: 3 },
    getblockheader: { height: 9, confirmations: 3 },
  })
  assert.deepEqual(await btc().status('t'), {
    state: 'included',
    height: 9,
    blockHash: 'aa',
    succeeded: true,
    fee: null,
  })
  script({
    getrawtransaction: { blockhash: 'aa', confirmations: 1 },
    getblockheader: { height: 9, confirmations: -1 },
  })
  assert.deepEqual(await btc().status('t'), { state: 'mempool' })
})

test('BTC: reads mempool payments exactly, omits removed transactions, refuses invalid responses', async () => {
  const [one, two] = ['a1'.repeat(32), 'b2'.repeat(32)]
  const script0 = '0014751e76e8199196d454941c45d1b3a323f1433bd6'
  const paid = (txid: string) =>
    `{"txid":"${txid}","vin":[{"txid":"${two}","vout":0}],"vout":[{"value":20999999.9769,"n":0,"scriptPubKey":{"hex":"${script0}"}},{"value":0,"n":1,"scriptPubKey":{"hex":"6a"}}]}`
  script({ getrawmempool: [one, two] })
  assert.deepEqual(await btc().waiting(), [one, two])
  answer = ({ params }) =>
    params[0] === one
      ? { raw: `{"result":${paid(one)},"error":null}` }
      : { result: null, error: { code: -5, message: 'No such mempool or blockchain transaction' } }
  assert.deepEqual(await btc().waitingTransfers([one, two]), [
    {
      txid: one,
      position: 0,
      asset: 'BTC',
      address: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
      amount: 2_099_999_997_690_000n,
      sender: null,
      senders: null,
      coinbase: false,
    },
  ])
  answer = () => ({ raw: `{"result":${paid(two)},"error":null}` })
  await unavailable(btc().waitingTransfers([one]), /another transaction/)
  for (const bad of [null, {}, 'x', [1], ['zz'], [one, one.slice(1)]]) {
    script({ getrawmempool: bad })
    await unavailable(btc().waiting(), /returned no ids/)
  }
  refuse(-32601, 'Method not found')
  await assert.rejects(btc().waiting(), RpcRefused)
  refuse(-28, 'Loading block index…')
  await assert.rejects(btc().waitingTransfers([one]), RpcRefused)
})

test('a broadcast is accepted, rejected or unknown, without parsing the text of a rejection', async () => {
  refuse(-27, 'Transaction outputs already in utxo set')
  assert.deepEqual(await btc().broadcast('00'), { kind: 'accepted' })
  // Nodes report in different words that they already have the transaction: the client then
  // requests it by its hash.
  refuse(-26, 'txn-already-known')
  assert.deepEqual(await btc().broadcast('00'), { kind: 'rejected', reason: 'txn-already-known' })
  refuse(-32000, 'already known')
  assert.deepEqual(await eth().broadcast('00'), { kind: 'rejected', reason: 'already known' })
  for (const client of [btc(), eth()]) {
    answer = () => ({ result: 'hash' })
    assert.deepEqual(await client.broadcast('00'), { kind: 'accepted' })
    refuse(-26, 'bad-txns-inputs-missingorspent')
    assert.deepEqual(await client.broadcast('00'), {
      kind: 'rejected',
      reason: 'bad-txns-inputs-missingorspent',
    })
    answer = () => 'cut'
    assert.equal((await client.broadcast('00')).kind, 'unknown')
    answer = () => ({ raw: '<html>', status: 504 })
    assert.equal((await client.broadcast('00')).kind, 'unknown')
  }
})

const word = (address: string) => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const A = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const B = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'

test('ETH: finds native and token transfers of a block and ignores irrelevant logs', async () => {
  const log = {
    address: (USDT.contract_address as string).toLowerCase(),
    topics: [TRANSFER, word(A), word(B)],
    data: `0x${(5n * 10n ** 6n).toString(16).padStart(64, '0')}`,
    logIndex: '0x3',
    transactionHash: '0xt2',
    blockHash: '0xb',
  }
  script({
    eth_getBlockByNumber: {
      number: '0x10',
      hash: '0xb',
      parentHash: '0xa',
      transactions: [
        { hash: '0xt1', from: A.toLowerCase(), to: B.toLowerCase(), value: '0xde0b6b3a7640001' },
        { hash: '0xt2', from: A, to: log.address, value: '0x0' },
        { hash: '0xt3', from: A, to: null, value: '0x1' },
      ],
    },
    eth_getLogs: [
      log,
      { ...log, logIndex: '0x4', address: B.toLowerCase() },
      { ...log, logIndex: '0x5', topics: [TRANSFER, word(A)] },
      { ...log, logIndex: '0x6', topics: [...log.topics, word(A)] },
      { ...log, logIndex: '0x7', data: '0x' },
      { ...log, logIndex: '0x8', data: `0x${'0'.repeat(64)}` },
    ],
  })
  const block = await eth().block(16)
  assert.deepEqual(block, {
    height: 16,
    hash: '0xb',
    parent: '0xa',
    txids: ['0xt1', '0xt2', '0xt3'],
    transfers: [
      {
        txid: '0xt1',
        position: -1,
        asset: 'ETH',
        address: B,
        amount: 10n ** 18n + 1n,
        sender: A,
        senders: { addresses: [A], complete: true },
        coinbase: false,
      },
      {
        txid: '0xt2',
        position: 3,
        asset: 'USDT_ETH',
        address: B,
        amount: 5_000_000n,
        sender: A,
        senders: { addresses: [A], complete: true },
        coinbase: false,
      },
    ],
  })
  // Logs are requested by the block's hash.
  assert.deepEqual(
    calls
      .filter((each) => each.method === 'eth_getLogs')
      .map((each) => (each.params[0] as { blockHash: string }).blockHash),
    ['0xb'],
  )
  await unavailable(eth().block(17), /another height/)
  script({ eth_getBlockByNumber: null })
  assert.equal(await eth().block(16), null)
})

test('ETH: fails to read a block with unreadable logs, and never drops logs', async () => {
  answer = ({ method }) =>
    method === 'eth_getLogs'
      ? { error: { code: -32005, message: 'limit exceeded' } }
      : {
          result: {
            number: '0x10',
            hash: '0xb',
            parentHash: '0xa',
            transactions: [{ hash: '0xt', from: A, to: B, value: '0x1' }],
          },
        }
  await unavailable(eth().block(16), /limit exceeded/)
})

/**
 * A block like those of the main network: one token transfer, and the bloom filter of its header.
 */
function tokenBlock(logs: readonly object[] = []) {
  const log = {
    address: USDT.contract_address as string,
    topics: [TRANSFER, word(A), word(B)],
    data: `0x${'5'.padStart(64, '0')}`,
    logIndex: '0x0',
    transactionHash: '0xt',
    blockHash: '0xb',
  }
  const receipt = {
    status: '0x1',
    gasUsed: '0x1',
    effectiveGasPrice: '0x1',
    blockNumber: '0x10',
    blockHash: '0xb',
    logs: [log],
    logsBloom: bloomOf([log]),
  }
  script({
    eth_getBlockByNumber: {
      number: '0x10',
      hash: '0xb',
      parentHash: '0xa',
      logsBloom: bloomOf([log]),
      transactions: [{ hash: '0xt', from: A, to: log.address, value: '0x0' }],
    },
    eth_getLogs: logs,
    eth_getBlockReceipts: [receipt],
    eth_getTransactionReceipt: receipt,
  })
  return {
    log,
    receipt,
    also: (more: Record<string, unknown>) => {
      const before = answer
      answer = (question) =>
        question.method in more
          ? (more[question.method] as ReturnType<typeof before>)
          : before(question)
    },
  }
}

test('ETH: computes the same logs bloom as go-ethereum', () => {
  // core/types/bloom9_test.go, TestBloomExtensively: a hundred texts, and the hash of the bloom
  // filter that contains them all.
  const logs = Array.from({ length: 100 }, (_, at) => ({
    address: `0x${Buffer.from(`xxxxxxxxxx data ${at} yyyyyyyyyyyyyy`).toString('hex')}`,
    topics: [],
  }))
  assert.equal(
    keccak256(bloomOf(logs) as `0x${string}`),
    '0xc8d3ca65cdb4874300a9e39475508f23ed6da09fdbc487f89a2dcf50b09eb263',
  )
  const contract = USDT.contract_address as string
  const [transfer, other] = [
    bloomOf([{ address: contract, topics: [TRANSFER] }]),
    bloomOf([{ address: contract, topics: [word(A)] }]),
  ]
  assert.deepEqual(
    [transfer, other, bloomOf([]), undefined, '0x'].map((bloom) =>
      mayTellOfTransfer(bloom, contract),
    ),
    [true, false, false, false, false],
  )
})

test('ETH: reads the receipts if an endpoint silently omits a block’s logs', async () => {
  const seen = async () =>
    (await eth().block(16))?.transfers.map(({ txid, asset, amount }) => [txid, asset, amount])
  const { log, receipt, also } = tokenBlock()
  assert.deepEqual(await seen(), [['0xt', 'USDT_ETH', 5n]])
  // Data that was received is not requested again.
  tokenBlock([log])
  calls.length = 0
  assert.deepEqual(await seen(), [['0xt', 'USDT_ETH', 5n]])
  assert.deepEqual(
    calls.map(({ method }) => method),
    ['eth_getBlockByNumber', 'eth_getLogs'],
  )
  // Neither response contains the logs, or a response is of another block, or the block is unknown.
  for (const receipts of [
    [],
    [{ ...receipt, logs: [] }],
    [{ ...receipt, logs: undefined }],
    [{ ...receipt, blockHash: '0xother' }],
    null,
  ]) {
    tokenBlock()
    also({ eth_getBlockReceipts: { result: receipts } })
    await unavailable(eth().block(16), /bloom filter|does not return/)
  }
  // If an endpoint does not return all receipts of a block together, each one is requested.
  tokenBlock()
  also({ eth_getBlockReceipts: { error: { code: -32601, message: 'the method does not exist' } } })
  assert.deepEqual(await seen(), [['0xt', 'USDT_ETH', 5n]])
  tokenBlock()
  also({ eth_getBlockReceipts: { error: { code: -32000, message: 'unknown block' } } })
  assert.deepEqual(await seen(), [['0xt', 'USDT_ETH', 5n]])
  tokenBlock([{ ...log, blockHash: '0xother' }])
  await unavailable(eth().block(16), /logs of another block/)
})

test('ETH: a receipt without logs does not prove that no payment was made', async () => {
  const { receipt, also } = tokenBlock()
  const expected = { asset: USDT, from: A, to: B }
  const status = () => eth().status('0xt', expected as never)
  assert.equal(((await status()) as { succeeded?: boolean }).succeeded, true)
  also({ eth_getTransactionReceipt: { result: { ...receipt, logs: [] } } })
  await unavailable(status(), /has no logs/)
  // A token transaction that paid no one has no log, and its bloom filter is empty.
  also({
    eth_getTransactionReceipt: {
      result: { ...receipt, logs: [], logsBloom: `0x${'0'.repeat(512)}` },
    },
  })
  assert.equal(((await status()) as { succeeded?: boolean }).succeeded, false)
})

test('ETH: returns the status with the fee actually paid', async () => {
  const receipt = {
    status: '0x1',
    gasUsed: '0x5208',
    effectiveGasPrice: '0x3b9aca00',
    blockNumber: '0x9',
    blockHash: '0xb',
  }
  script({ eth_getTransactionReceipt: receipt })
  assert.deepEqual(await eth().status('0xt'), {
    state: 'included',
    height: 9,
    blockHash: '0xb',
    succeeded: true,
    fee: 21_000n * 10n ** 9n,
  })
  script({ eth_getTransactionReceipt: { ...receipt, status: '0x0', l1Fee: '0x5' } })
  assert.deepEqual(await eth().status('0xt'), {
    state: 'included',
    height: 9,
    blockHash: '0xb',
    succeeded: false,
    fee: 21_000n * 10n ** 9n + 5n,
  })
  script({ eth_getTransactionReceipt: null, eth_getTransactionByHash: {} })
  assert.deepEqual(await eth().status('0xt'), { state: 'mempool' })
  script({ eth_getTransactionReceipt: null, eth_getTransactionByHash: null })
  assert.deepEqual(await eth().status('0xt'), { state: 'absent' })
  refuse(-32000, 'header not found')
  await assert.rejects(eth().status('0xt'), ChainError)
})

test('ETH: amounts above 2^53 are exact', async () => {
  script({
    eth_getBalance: '0x52b7d2dcc80cd2e4000001',
    eth_call: `0x${'f'.repeat(64)}`,
    eth_getTransactionCount: '0x20',
  })
  assert.equal(
    await eth().balance(A, ETH_ASSETS.find((asset) => asset.type === 'native') as typeof USDT),
    0x52b7d2dcc80cd2e4000001n,
  )
  assert.equal(await eth().balance(A, USDT), 2n ** 256n - 1n)
  assert.equal(await eth().nonce(A), 32n)
})

test("ETH: reads the latest block and the chain's final block", async () => {
  answer = ({ params }) => ({
    result:
      params[0] === 'latest'
        ? { number: '0x20', hash: '0xh' }
        : params[0] === 'finalized'
          ? { number: '0x1f', hash: '0xf' }
          : null,
  })
  assert.deepEqual(await eth().tip(), { height: 32, hash: '0xh', finalHeight: 31 })
  answer = ({ params }) => ({
    result: params[0] === 'latest' ? { number: '0x20', hash: '0xh' } : null,
  })
  assert.equal((await eth().tip()).finalHeight, 0)
})
