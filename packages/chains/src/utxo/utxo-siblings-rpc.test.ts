// Nodes of Bitcoin's sister chains have different response formats; the client reads each.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UtxoClient, type Fetch, type Network } from '../index.ts'
import { addressOf, local, mainnet } from '../../testing/support.ts'

type Answers = Record<string, (params: unknown[]) => unknown>
const calls: { method: string; params: unknown[] }[] = []

/**
 * A response that begins with RAW is sent as JSON text unchanged; an Error becomes an error of the
 * node.
 */
function node(answers: Answers): Fetch {
  calls.length = 0
  return async (_, init) => {
    const { method, params } = JSON.parse(String(init.body)) as {
      method: string
      params: unknown[]
    }
    calls.push({ method, params })
    const reply = answers[method]?.(params)
    if (reply === undefined)
      return Response.json(
        { result: null, error: { code: -32601, message: 'Method not found' }, id: 1 },
        { status: 404 },
      )
    return new Response(
      typeof reply === 'string' && reply.startsWith('RAW')
        ? `{"result":${reply.slice(3)},"error":null,"id":1}`
        : JSON.stringify({ result: reply, error: null, id: 1 }),
    )
  }
}
const client = (code: string, answers: Answers, registry = local) =>
  new UtxoClient(registry.network(code) as Network, { url: 'http://127.0.0.1:1' }, node(answers))

test('DOGE: requests each transaction of a block by id, in order, with exact values', async () => {
  const network = local.network('DOGE') as Network
  const own = addressOf(network, [1, network.chain_index, 0])
  const { utxo } = await import('../index.ts')
  const hex = Buffer.from(utxo.scriptOf(network, own)).toString('hex')
  const ids = Array.from({ length: 20 }, (_, at) => `t${at}`)
  const doge = client('DOGE', {
    getblockhash: () => 'aa',
    getblock: () => ({ hash: 'aa', height: 9, previousblockhash: 'bb', tx: ids }),
    getrawtransaction: ([id]) =>
      `RAW{"txid":"${String(id)}","vin":[{}],"vout":[{"value":123456789.12345678,"n":0,"scriptPubKey":{"hex":"${hex}"}}]}`,
  })
  const block = await doge.block(9)
  assert.deepEqual(block?.txids, ids)
  assert.ok(
    block?.transfers.every(
      (each) =>
        each.amount === 12_345_678_912_345_678n && each.asset === 'DOGE' && each.address === own,
    ),
  )
  assert.deepEqual(
    calls.find(({ method }) => method === 'getblock')?.params,
    ['aa', true],
    'its nodes take no number',
  )
})

test('DOGE: uses the minimum fee if the node reports -1 for a missing estimate', async () => {
  const rates = await client('DOGE', {
    estimatesmartfee: () => 'RAW{"feerate":-1,"blocks":6}',
  }).feeRates()
  assert.deepEqual(rates, { low: 1_000_000n, medium: 1_000_000n, high: 1_000_000n })
})

test('BCH: requests estimatefee, the only estimate that its nodes support', async () => {
  assert.deepEqual(await client('BCH', { estimatefee: () => 'RAW0.00001234' }).feeRates(), {
    low: 1234n,
    medium: 1234n,
    high: 1234n,
  })
  assert.deepEqual(await client('BCH', { estimatefee: () => 'RAW-1' }).feeRates(), {
    low: 1000n,
    medium: 1000n,
    high: 1000n,
  })
  assert.deepEqual(
    calls.filter(({ method }) => method === 'estimatefee').map(({ params }) => params),
    [[], [], []],
  )
})

test('DASH: a ChainLock makes two confirmations final instead of twelve, lower blocks too', async () => {
  const tip = async (lockedHeight: number) =>
    client('DASH', {
      getblockchaininfo: () => ({ blocks: 100, bestblockhash: 'h100' }),
      getblockhash: ([height]) => `h${String(height)}`,
      getblock: ([hash]) => ({ chainlock: Number(String(hash).slice(1)) <= lockedHeight }),
    }).tip()
  assert.equal((await tip(100)).finalHeight, 99, 'one more must stand on it')
  assert.equal((await tip(99)).finalHeight, 99)
  assert.equal((await tip(95)).finalHeight, 95)
  assert.equal(
    (await tip(89)).finalHeight,
    null,
    'plain depth says as much: it is counted in blocks that were read',
  )
  assert.equal((await tip(0)).finalHeight, null)
  for (const code of ['BTC', 'LTC', 'DOGE', 'BCH']) {
    assert.equal(
      (await client(code, { getblockchaininfo: () => ({ blocks: 100, bestblockhash: 'h' }) }).tip())
        .finalHeight,
      null,
      code,
    )
  }
})

test('distinguishes Bitcoin and Bitcoin Cash, which share their first block', async () => {
  const [btc, bch] = ['BTC', 'BCH'].map((code) => mainnet.network(code) as Network)
  assert.equal(btc?.genesis, bch?.genesis)
  const serving = (network: Network): Answers => ({
    getblockhash: ([height]) =>
      height === 0
        ? network.genesis
        : (network.checkpoints?.find((each) => each.height === height)?.hash ?? 'other'),
  })
  for (const own of [btc, bch] as Network[]) {
    for (const served of [btc, bch] as Network[]) {
      const probe = client(own.code, serving(served), mainnet).probe()
      if (own === served) await probe
      else await assert.rejects(probe, { code: 'WRONG_NETWORK' })
    }
  }
  for (const code of ['LTC', 'DASH', 'DOGE'])
    await assert.rejects(client(code, serving(btc as Network), mainnet).probe(), {
      code: 'WRONG_NETWORK',
    })
})

test('Bitcoin: refuses a node of a later fork by the newest or the operator’s checkpoint', async () => {
  const network = mainnet.network('BTC') as Network
  const [earlier, newest] = network.checkpoints as [
    { height: number; hash: string },
    { height: number; hash: string },
  ]
  const blocks: Record<number, string> = {
    0: network.genesis as string,
    [earlier.height]: earlier.hash,
    [newest.height]: newest.hash,
    970_000: 'cd'.repeat(32),
  }
  const probe = (served: Record<number, string>, checkpoint?: { height: number; hash: string }) =>
    new UtxoClient(
      network,
      { url: 'http://127.0.0.1:1', ...(checkpoint ? { checkpoint } : {}) },
      async (_url, init) => {
        const {
          id,
          params: [height],
        } = JSON.parse(String(init.body)) as { id: unknown; params: [number] }
        return new Response(
          JSON.stringify({
            id,
            result: served[height] ?? null,
            error: served[height] ? null : { code: -8, message: 'Block height out of range' },
          }),
        )
      },
    ).probe()
  await probe(blocks)
  await probe(blocks, { height: 970_000, hash: 'cd'.repeat(32) })
  await assert.rejects(probe({ ...blocks, [newest.height]: 'ef'.repeat(32) }), {
    code: 'WRONG_NETWORK',
    message: new RegExp(`block ${newest.height} is efef`),
  })
  await assert.rejects(probe(blocks, { height: 970_000, hash: '12'.repeat(32) }), {
    code: 'WRONG_NETWORK',
    message: /block 970000 is cdcd/,
  })
  // A node that is still loading the chain is not treated as a node of another network: the request
  // waits.
  await assert.rejects(
    probe({ 0: blocks[0] as string, [earlier.height]: earlier.hash }),
    (error: { code: string }) => error.code !== 'WRONG_NETWORK',
  )
})

const P2PKH = '76a914' + '11'.repeat(20) + '88ac'
const blockOf =
  (tx: string, more = '"height":9,"previousblockhash":"bb"') =>
  (): string =>
    `RAW{"hash":"aa",${more},"tx":[${tx}]}`
const output = (n: number, more: string) =>
  `{"value":0.5,"n":${n},"scriptPubKey":{"hex":"${P2PKH}"}${more}}`
const positions = async (code: string, vout: string) =>
  (
    await client(code, {
      getblockhash: () => 'aa',
      getblock: blockOf(`{"txid":"t","vin":[{"txid":"u","vout":0}],"vout":[${vout}]}`),
    }).block(9)
  )?.transfers.map(({ position, amount }) => [position, amount])

test('BCH: an output that carries CashTokens is not credited, not spent and not burned', async () => {
  const token = output(1, ',"tokenData":{"category":"00","amount":"5"}')
  const raw = `{"value":0.5,"n":2,"scriptPubKey":{"hex":"ef${'09'.repeat(32)}1005${P2PKH}"}}`
  assert.deepEqual(await positions('BCH', [output(0, ''), token, raw].join(',')), [
    [0, 50_000_000n],
  ])
})

/**
 * Returns the coins that a client lists separately from the transfers of a block with one
 * transaction.
 */
const asideOf = async (code: string, txid: string, vout: string) =>
  (
    await client(code, {
      getblockhash: () => 'aa',
      getblock: blockOf(`{"txid":"${txid}","vin":[{"txid":"u","vout":0}],"vout":[${vout}]}`),
    }).block(9)
  )?.aside
const TOKEN_TXID = 'ab'.repeat(32)

test('BCH: lists the CashTokens of outputs, from tokenData and from the script prefix', async () => {
  const category = Buffer.from(Array.from({ length: 32 }, (_, at) => at))
  const shown = Buffer.from(category).reverse().toString('hex')
  const prefixed = (n: number, rest: string) =>
    `{"value":0.5,"n":${n},"scriptPubKey":{"hex":"ef${category.toString('hex')}${rest}${P2PKH}"}}`
  const data = (n: number, fields: string) =>
    output(n, `,"tokenData":{"category":"${shown.toUpperCase()}"${fields}}`)
  const cases: [string, { amount: string; nft: object | null }][] = [
    [data(0, ',"amount":"9223372036854775807"'), { amount: '9223372036854775807', nft: null }],
    [prefixed(1, '10ffffffffffffffff7f'), { amount: '9223372036854775807', nft: null }],
    [
      data(2, ',"amount":"0","nft":{"capability":"minting","commitment":"ABcd"}'),
      { amount: '0', nft: { capability: 'minting', commitment: 'abcd' } },
    ],
    [prefixed(3, '6202abcd'), { amount: '0', nft: { capability: 'minting', commitment: 'abcd' } }],
    [prefixed(4, '20'), { amount: '0', nft: { capability: 'none', commitment: '' } }],
    [
      prefixed(5, '7103fffffffd0001'),
      { amount: '256', nft: { capability: 'mutable', commitment: 'ffffff' } },
    ],
    [prefixed(6, '10fe00000100'), { amount: '65536', nft: null }],
  ]
  const aside = await asideOf('BCH', TOKEN_TXID, cases.map(([text]) => text).join(','))
  assert.deepEqual(
    aside?.map(({ vout, amount, reason, token }) => ({ vout, amount, reason, token })),
    cases.map(([, facts], vout) => ({
      vout,
      amount: 50_000_000n,
      reason: 'CASH_TOKENS',
      token: { category: shown, ...facts },
    })),
  )
  const [plain] =
    (
      await client('BCH', {
        getblockhash: () => 'aa',
        getblock: blockOf(`{"txid":"t","vin":[{"txid":"u","vout":0}],"vout":[${output(0, '')}]}`),
      }).block(9)
    )?.transfers ?? []
  assert.ok(
    aside?.every(({ address }) => address === plain?.address),
    'the address is that of the script behind the prefix',
  )
})

test('BCH: malformed CashTokens do not prevent reading a block, and are not listed as tokens', async () => {
  const facts = async (fields: string) =>
    (await asideOf('BCH', TOKEN_TXID, output(0, `,"tokenData":${fields}`)))?.map(
      ({ token }) => token,
    )
  const category = `"category":"${'0a'.repeat(32)}"`
  for (const odd of [
    '{}',
    '[]',
    '"x"',
    '7',
    '{"category":"00","amount":"5"}',
    `{"category":"${'zz'.repeat(32)}"}`,
    `{${category},"amount":5}`,
    `{${category},"amount":"-5"}`,
    `{${category},"amount":"9223372036854775808"}`,
    `{${category},"amount":"${'9'.repeat(500)}"}`,
    `{${category},"nft":7}`,
    `{${category},"nft":{"capability":"other","commitment":""}}`,
    `{${category},"nft":{"capability":"none","commitment":"abc"}}`,
    `{${category},"nft":{"capability":"none","commitment":"${'ab'.repeat(1025)}"}}`,
    `{${category},"nft":{"capability":"none","commitment":"\\u0000"}}`,
  ])
    assert.deepEqual(await facts(odd), [null], odd)
  // Without an amount, an index or an existing id the list is empty.
  for (const [txid, vout] of [
    ['t', output(0, ',"tokenData":{}')],
    [TOKEN_TXID, `{"n":0,"scriptPubKey":{"hex":"${P2PKH}"},"tokenData":{}}`],
    [TOKEN_TXID, output(4_294_967_296, ',"tokenData":{}')],
    [TOKEN_TXID, `{"value":30000000,"n":0,"scriptPubKey":{"hex":"${P2PKH}"},"tokenData":{}}`],
    // Invalid prefixes by CHIP-2022-02: truncated, reserved bits, neither amount nor NFT, a
    // commitment without an NFT, amount 0.
    ...[
      '',
      '10',
      '10ff05',
      ...['9005', '00', '5101ab05', '1000', '1105', '2305', '6000', '10ffffffffffffffffff'].map(
        (rest) => rest + P2PKH,
      ),
    ].map((rest) => [
      TOKEN_TXID,
      `{"value":0.5,"n":0,"scriptPubKey":{"hex":"ef${'09'.repeat(32)}${rest}"}}`,
    ]),
  ] as [string, string][])
    assert.deepEqual(await asideOf('BCH', txid, vout), [], vout)
  assert.equal(await asideOf('LTC', TOKEN_TXID, output(0, '')), undefined)
})

test('LTC: reads other outputs and inputs of a block that contains extension-block ones', async () => {
  assert.deepEqual(
    await positions(
      'LTC',
      [output(0, ',"ismweb":false'), '{"ismweb":true,"output_id":"aa"}', output(2, '')].join(','),
    ),
    [
      [0, 50_000_000n],
      [2, 50_000_000n],
    ],
  )
  const ltc = client('LTC', {
    getrawtransaction: ([id]) =>
      id === 'paid'
        ? {
            txid: 'paid',
            vin: [
              { ismweb: true, output_id: 'aa' },
              { txid: 'parent', vout: 1 },
            ],
            vout: [],
          }
        : {
            txid: 'parent',
            vout: [
              { ismweb: true, output_id: 'bb' },
              { n: 1, scriptPubKey: { hex: P2PKH } },
            ],
          },
  })
  const { addresses, complete } = await ltc.senders('paid')
  assert.deepEqual([addresses.length, complete], [1, false])
})

test('DASH: a withdrawal from the credit pool has no sender, because it spends no output', async () => {
  assert.deepEqual(
    await client('DASH', { getrawtransaction: () => ({ txid: 'w', vin: [], vout: [] }) }).senders(
      'w',
    ),
    { addresses: [], complete: false },
  )
})

test('a block that contradicts the request or lacks a required field fails with its name', async () => {
  const transaction = `{"txid":"t","vin":[{}],"vout":[${output(0, '')}]}`
  const cases: [() => string, RegExp][] = [
    [
      () => `RAW{"hash":"cc","height":9,"previousblockhash":"bb","tx":[${transaction}]}`,
      /BTC: getblock returned another block than requested/,
    ],
    [blockOf(''), /without tx/],
    [blockOf(transaction, '"height":8,"previousblockhash":"bb"'), /another height/],
    [blockOf(transaction, '"height":9,"previousblockhash":"bb","nTx":2'), /1 of 2 tx/],
    [blockOf(transaction, '"height":9'), /no previousblockhash/],
    [blockOf(`${transaction},${transaction}`), /twice/],
    [blockOf('{"txid":"t","vin":[{}]}'), /t without vin or vout/],
    [blockOf('{"vin":[{}],"vout":[]}'), /without txid/],
    [
      blockOf('{"txid":"t","vin":[{}],"vout":[{"value":1,"n":0}]}'),
      /without vout.scriptPubKey.hex/,
    ],
    [
      blockOf(`{"txid":"t","vin":[{}],"vout":[{"n":0,"scriptPubKey":{"hex":"${P2PKH}"}}]}`),
      /without vout.value/,
    ],
    [
      blockOf(`{"txid":"t","vin":[{}],"vout":[{"value":1,"scriptPubKey":{"hex":"${P2PKH}"}}]}`),
      /without vout.n/,
    ],
  ]
  for (const [getblock, message] of cases) {
    await assert.rejects(
      client('BTC', { getblockhash: () => 'aa', getblock }).block(9),
      (error: Error) => {
        assert.equal((error as { code?: string }).code, 'RPC_UNAVAILABLE', String(error))
        assert.match(error.message, message)
        return true
      },
    )
  }
})
