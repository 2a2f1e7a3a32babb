import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A process that responds like a Bitcoin node and an Ethereum node, with generated blocks: each
 * height has the same transactions, under a separate hash. POST /btc, /eth: JSON-RPC. Arguments:
 * transactions of a Bitcoin block, transfers of an Ethereum block, delay of a response in
 * milliseconds, number of concurrent responses, and the interval in blocks at which an address of
 * the platform is paid.
 */
const [coins, tokens, answerMs, atOnce, paidEvery] = process.argv.slice(2, 7).map(Number) as [
  number,
  number,
  number,
  number,
  number,
]
const [OWN_SCRIPT, OWN_ADDRESS, CONTRACT] = process.argv.slice(7) as [string, string, string]
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
const heightOf = (text: string): number => Number.parseInt(text.slice(-8), 16)
/** Returns a block hash that encodes the height, so that no state is needed. */
const blockHash = (height: number): string =>
  hash('block').slice(8) + height.toString(16).padStart(8, '0')

function coinBlock(height: number): string {
  const tx = Array.from({ length: coins }, (_, at) => ({
    txid: hash(`${height} ${at}`),
    version: 2,
    size: 372,
    vsize: 209,
    weight: 834,
    locktime: 0,
    vin:
      at === 0
        ? [{ coinbase: '03', sequence: 4294967295 }]
        : [0, 1].map((n) => ({
            txid: hash(`parent ${height} ${at} ${n}`),
            vout: n,
            scriptSig: { asm: '', hex: '' },
            txinwitness: ['30'.repeat(71), '02'.repeat(33)],
            sequence: 4294967293,
          })),
    vout: [0, 1].map((n) => {
      const hex =
        at === 5 && n === 0 && height % paidEvery === 0
          ? OWN_SCRIPT
          : `0014${hash(`to ${height} ${at} ${n}`).slice(0, 40)}`
      return {
        value: 0.01234567,
        n,
        scriptPubKey: {
          asm: `0 ${hex.slice(4)}`,
          desc: `addr(${hex})`,
          hex,
          type: 'witness_v0_keyhash',
        },
      }
    }),
    hex: '02'.repeat(300),
  }))
  const text = JSON.stringify({
    hash: blockHash(height),
    confirmations: 1,
    height,
    version: 536870912,
    time: 1_700_000_000,
    nTx: coins,
    previousblockhash: blockHash(height - 1),
    tx,
  })
  return text
}

const address = (text: string): string => `0x${hash(text).slice(0, 40)}`
function accountBlock(height: number): string {
  const transactions = Array.from({ length: tokens * 1.5 }, (_, at) => ({
    blockHash: `0x${blockHash(height)}`,
    blockNumber: `0x${height.toString(16)}`,
    from: address(`from ${height} ${at}`),
    gas: '0x186a0',
    gasPrice: '0x3b9aca00',
    maxFeePerGas: '0x3b9aca00',
    maxPriorityFeePerGas: '0x1',
    hash: `0x${hash(`${height} ${at}`)}`,
    input:
      at < tokens ? `0xa9059cbb${'0'.repeat(24)}${'ab'.repeat(20)}${'0'.repeat(60)}ffff` : '0x',
    nonce: '0x1',
    to: at < tokens ? CONTRACT : address(`to ${height} ${at}`),
    transactionIndex: `0x${at.toString(16)}`,
    value: at < tokens ? '0x0' : '0xde0b6b3a7640000',
    type: '0x2',
    chainId: '0x1',
    v: '0x0',
    r: `0x${hash('r')}`,
    s: `0x${hash('s')}`,
  }))
  return JSON.stringify({
    number: `0x${height.toString(16)}`,
    hash: `0x${blockHash(height)}`,
    parentHash: `0x${blockHash(height - 1)}`,
    timestamp: '0x65',
    transactions,
  })
}
function logsOf(height: number): string {
  const padded = (text: string) => `0x${text.replace('0x', '').padStart(64, '0')}`
  return JSON.stringify(
    Array.from({ length: tokens }, (_, at) => ({
      address: CONTRACT,
      topics: [
        TRANSFER,
        padded(address(`from ${height} ${at}`)),
        padded(
          at === 3 && height % paidEvery === 0 ? OWN_ADDRESS : address(`receiver ${height} ${at}`),
        ),
      ],
      data: padded('0xf4240'),
      blockNumber: `0x${height.toString(16)}`,
      blockHash: `0x${blockHash(height)}`,
      transactionHash: `0x${hash(`${height} ${at}`)}`,
      logIndex: `0x${at.toString(16)}`,
      removed: false,
    })),
  )
}

/**
 * Cache of responses by request, so that a round measures the caller and not the generation of
 * responses.
 */
const made = new Map<string, string>()
let tip = 0
function answer(method: string, params: unknown[]): string {
  const [first] = params as [unknown]
  switch (method) {
    case 'getblockchaininfo':
      return JSON.stringify({ blocks: tip, bestblockhash: blockHash(tip) })
    case 'getblockhash':
      return JSON.stringify(blockHash(first as number))
    case 'getblock':
      return coinBlock(heightOf(first as string))
    case 'eth_getBlockByNumber': {
      if (first === 'latest' || first === 'finalized') {
        const height = first === 'latest' ? tip : Math.max(0, tip - 64)
        return JSON.stringify({
          number: `0x${height.toString(16)}`,
          hash: `0x${blockHash(height)}`,
          parentHash: '0x',
          transactions: [],
        })
      }
      return accountBlock(Number(first))
    }
    case 'eth_getLogs':
      return logsOf(heightOf((first as { blockHash: string }).blockHash))
    case 'eth_chainId':
      return '"0x1"'
    // The transaction of the payer: any sender, with a coin of the same shape.
    case 'getrawtransaction':
      return JSON.stringify({
        txid: first,
        vin: [{ txid: hash(first as string), vout: 0 }],
        vout: [{ value: 1, n: 0, scriptPubKey: { hex: `0014${'22'.repeat(20)}` } }],
      })
    default:
      return 'null'
  }
}

let free = atOnce
const waiting: (() => void)[] = []
const server = createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8').on('data', (piece: string) => {
    text += piece
  })
  request.on('end', () => {
    if (request.url?.startsWith('/tip/')) {
      tip = Number(request.url.slice(5))
      return void response.end()
    }
    const { id, method, params } = JSON.parse(text) as {
      id: number
      method: string
      params: unknown[]
    }
    const key = `${method} ${JSON.stringify(params)}`
    const isKept =
      method === 'getblock' ||
      method === 'eth_getLogs' ||
      (method === 'eth_getBlockByNumber' && params[0] !== 'latest' && params[0] !== 'finalized')
    const result = made.get(key) ?? answer(method, params)
    if (isKept) made.set(key, result)
    const send = () => {
      response.setHeader('content-type', 'application/json')
      response.end(`{"jsonrpc":"2.0","id":${id},"result":${result}}`)
      free++
      waiting.shift()?.()
    }
    const work = () => {
      free--
      if (answerMs === 0) send()
      else setTimeout(send, answerMs)
    }
    if (free > 0) work()
    else waiting.push(work)
  })
})
server.listen(0, '127.0.0.1', () => {
  console.log(`ready ${(server.address() as AddressInfo).port}`)
})
