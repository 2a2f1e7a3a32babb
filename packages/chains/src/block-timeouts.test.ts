// Responses that contain a whole block may take a minute. If a block does not arrive, clients of
// the Bitcoin family read its transactions one by one.
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import {
  jsonRpc,
  RpcUnavailable,
  TronClient,
  UtxoClient,
  type Fetch,
  type Network,
} from './index.ts'
import { addressOf, BTC, local } from '../testing/support.ts'

const url = { url: 'http://node.test' }
/** A response that never arrives; it fails when the client aborts it. */
const never = (init: RequestInit): Promise<Response> =>
  new Promise((_resolve, reject) => {
    init.signal?.addEventListener('abort', () => {
      reject(init.signal?.reason as Error)
    })
  })
/** Lets pending calls start their timers. */
const settle = async () => {
  for (let turn = 0; turn < 10; turn++)
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
}

async function heldFor(
  work: () => Promise<unknown>,
): Promise<{ seconds: number; message: string }> {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    let message: string | null = null
    work().then(
      () => {
        message = 'answered'
      },
      (error: unknown) => {
        message = (error as Error).message
      },
    )
    await settle()
    for (let seconds = 1; seconds <= 120; seconds++) {
      mock.timers.tick(1000)
      await settle()
      if (message !== null) return { seconds, message }
    }
    return { seconds: Infinity, message: '' }
  } finally {
    mock.timers.reset()
  }
}

test('a request times out after 8 seconds, and a request for a block after 60 seconds', async () => {
  const ask = (method: string, params: unknown[] = []) =>
    heldFor(() => jsonRpc(url, (_url, init) => never(init))(method, params))
  for (const method of [
    'getblockchaininfo',
    'sendrawtransaction',
    'getrawtransaction',
    'eth_getBalance',
    'eth_getTransactionReceipt',
    'getblockheader',
    'ledger_entry',
  ]) {
    assert.deepEqual(await ask(method), {
      seconds: 8,
      message: `node.test: ${method}: no response within 8000 ms`,
    })
  }
  for (const method of [
    'getblock',
    'getBlock',
    'eth_getBlockByNumber',
    'eth_getBlockReceipts',
    'eth_getLogs',
    'ledger',
    'getTransactions',
    'getrawmempool',
  ]) {
    assert.deepEqual(await ask(method, method === 'ledger' ? [{ transactions: true }] : []), {
      seconds: 60,
      message: `node.test: ${method}: no response within 60000 ms`,
    })
  }
  // Block headers alone are small.
  for (const [method, params] of [
    ['eth_getBlockByNumber', ['latest', false]],
    ['getBlock', [7, { transactionDetails: 'none' }]],
    ['ledger', [{ ledger_index: 7 }]],
  ] as const) {
    assert.equal((await ask(method, [...params])).seconds, 8, method)
  }
  const tron = new TronClient(local.network('TRX') as Network, [], url, (_url, init) => never(init))
  assert.deepEqual(await heldFor(() => tron.block(7)), {
    seconds: 60,
    message: 'node.test: wallet/getblockbynum: no response within 60000 ms',
  })
  assert.deepEqual(await heldFor(() => tron.tip()), {
    seconds: 8,
    message: 'node.test: wallet/getnowblock: no response within 8000 ms',
  })
})

for (const [what, late] of [
  ['in time', true],
  ['within the bound of bytes', false],
] as const) {
  test(`BTC: if a block's transactions do not arrive ${what}, they are requested one by one`, async () => {
    const own = addressOf(BTC, [1, 0, 0])
    const { utxo } = await import('./index.ts')
    const hex = Buffer.from(utxo.scriptOf(BTC, own)).toString('hex')
    const requests: string[] = []
    const answers: Record<string, (params: unknown[]) => unknown> = {
      getblockhash: () => 'aa',
      getrawtransaction: ([txid]) => ({
        txid,
        vin: [{ txid: 'x', vout: 0 }],
        vout: [{ n: 0, value: 0.5, scriptPubKey: { hex } }],
      }),
      getblock: () => ({
        hash: 'aa',
        height: 7,
        previousblockhash: 'bb',
        nTx: 2,
        tx: ['t1', 't2'],
      }),
    }
    const endless = () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            controller.enqueue(new Uint8Array(32 * 1024 * 1024))
          },
        }),
      )
    const ask: Fetch = async (_url, init) => {
      const { method, params } = JSON.parse(String(init.body)) as {
        method: string
        params: unknown[]
      }
      requests.push(`${method} ${String(params[1] ?? '')}`.trim())
      if (method === 'getblock' && params[1] === 2) return late ? never(init) : endless()
      return Response.json({ result: answers[method]?.(params) })
    }
    const client = new UtxoClient(BTC, url, ask)
    let amounts: bigint[] | undefined
    const read = async () => {
      amounts = (await client.block(7))?.transfers.map(({ amount }) => amount)
    }
    if (late) assert.equal((await heldFor(read)).seconds, 60)
    else await read()
    assert.deepEqual(amounts, [50_000_000n, 50_000_000n])
    assert.deepEqual(requests, [
      'getblockhash',
      'getblock 2',
      'getblock 1',
      'getrawtransaction true',
      'getrawtransaction true',
    ])
  })
}

test('BTC: sends no further requests for a block to an unreachable endpoint', async () => {
  const requests: string[] = []
  const client = new UtxoClient(BTC, url, async (_url, init) => {
    const { method } = JSON.parse(String(init.body)) as { method: string }
    requests.push(method)
    return method === 'getblockhash'
      ? Response.json({ result: 'aa' })
      : new Response('busy', { status: 503 })
  })
  await assert.rejects(client.block(7), RpcUnavailable)
  assert.deepEqual(requests, ['getblockhash', 'getblock'])
})
