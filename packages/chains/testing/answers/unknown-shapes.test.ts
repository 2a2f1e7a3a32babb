// Transactions and fields of future protocol versions: a field that is not needed is not read, and
// an unreadable one never stops the scan of a network.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  CardanoClient,
  EvmClient,
  RpcUnavailable,
  SolanaClient,
  TronClient,
  UtxoClient,
  XrpClient,
  type Asset,
  type Fetch,
  type Network,
  type Unreadable,
} from '../../src/index.ts'
import { addressBytes } from '../../src/cardano/address.ts'
import { fundingOf, hashOf, outputOf } from '../../src/cardano/body.ts'
import { array, byteString, map, uint } from '../../src/cardano/cbor.ts'
import { ADA, TO } from '../cardano-support.ts'
import { MINT, OWNER, PAYER } from '../solana-support.ts'
import { addressOf, local } from '../support.ts'

const net = (code: string) => local.network(code) as Network
const url = { url: 'http://node.test' }
const hash = (digit: string) => `0x${digit.repeat(64)}`

type Answers = Record<string, unknown>
const rpc =
  (answers: Answers): Fetch =>
  async (_url, init) => {
    const { method, params } = JSON.parse(String(init.body)) as {
      method: string
      params: unknown[]
    }
    const reply = answers[method]
    const answer =
      typeof reply === 'function' ? (reply as (params: unknown[]) => unknown)(params) : reply
    return answer instanceof Response ? answer : Response.json({ result: answer ?? null })
  }
function collect(): { reports: Unreadable[]; report: (problem: Unreadable) => void } {
  const reports: Unreadable[] = []
  return {
    reports,
    report: (problem) => {
      reports.push(problem)
    },
  }
}

const A = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const PAYMENT = { hash: hash('3'), from: A, to: A.toLowerCase(), value: '0x5', type: '0x2' }

test('EVM: reports a transaction of unknown type without to or value, and reads the others', async () => {
  const read = async (transactions: unknown[]) => {
    const { reports, report } = collect()
    const client = new EvmClient(
      net('ETH'),
      [],
      url,
      rpc({
        eth_getBlockByNumber: {
          number: '0x7',
          hash: hash('1'),
          parentHash: hash('0'),
          transactions,
        },
      }),
      { report },
    )
    return { block: await client.block(7), reports }
  }
  // EIP-8130: type 0x79 contains a list of calls, and therefore neither `to` nor `value`.
  for (const odd of [
    {},
    { to: null },
    { value: null },
    { value: '0x5' },
    { value: 'many', to: A },
    { value: '0x5', to: 'nowhere' },
  ]) {
    const { block, reports } = await read([
      { hash: hash('2'), from: A, type: '0x79', calls: [], ...odd },
      PAYMENT,
    ])
    assert.deepEqual(
      block?.transfers.map(({ txid, amount }) => [txid, amount]),
      [[hash('3'), 5n]],
    )
    assert.deepEqual(block?.txids, [hash('2'), hash('3')])
    assert.deepEqual(
      reports.map(({ network, kind, name }) => [network, kind, name]),
      [['ETH', 'transaction', hash('2')]],
      JSON.stringify(odd),
    )
  }
  // A transaction of this type with the usual fields is read like any other.
  const { block, reports } = await read([{ ...PAYMENT, type: '0x79' }])
  assert.deepEqual([block?.transfers.length, reports.length], [1, 0])
  // If the type is known, the endpoint is at fault: a deposit could be missing.
  for (const type of [undefined, null, '0x0', '0x1', '0x2', '0x3', '0x4', '0x04', '0x7e', '0x68']) {
    for (const odd of [{ value: undefined }, { value: null }, { to: undefined }]) {
      await assert.rejects(
        read([{ ...PAYMENT, type, ...odd }]),
        (error: unknown) =>
          error instanceof RpcUnavailable &&
          /(?:no|without) transactions\.(?:to|value)/.test(error.message),
      )
    }
  }
})

test('Solana: re-requests a block with a later transaction version and reads its balances', async () => {
  const usdc = {
    asset_name: 'USDC_SOL',
    type: 'token',
    contract_address: MINT,
    decimals: 6,
  } as unknown as Asset
  const requests: unknown[] = []
  const meta = {
    err: null,
    fee: 5000,
    preBalances: [9, 0],
    postBalances: [1, 3],
    preTokenBalances: [],
    postTokenBalances: [],
  }
  const transaction = {
    signatures: ['S'],
    accountKeys: [PAYER, OWNER].map((pubkey) => ({ pubkey })),
  }
  const answer = (more: object = {}) => ({
    blockhash: 'B',
    previousBlockhash: 'A',
    parentSlot: 1,
    blockHeight: 1,
    transactions: [{ version: 2, transaction, meta: { ...meta, ...more } }],
  })
  const unsupported = Response.json({
    error: {
      code: -32015,
      message: 'Transaction version (2) is not supported by the requesting client.',
    },
  })
  const client = (shown: object) =>
    new SolanaClient(
      net('SOL'),
      [usdc],
      url,
      rpc({
        getBlock: ([, options]: [number, { maxSupportedTransactionVersion: number }]) => {
          requests.push(options.maxSupportedTransactionVersion)
          return options.maxSupportedTransactionVersion < 2 ? unsupported.clone() : shown
        },
      }),
    )
  assert.deepEqual(
    (await client(answer()).block(2))?.transfers.map(({ address, amount }) => [address, amount]),
    [[OWNER, 3n]],
  )
  assert.deepEqual(requests, [1, 255])
  // A token of another program may have another format.
  for (const uiTokenAmount of [undefined, null, {}, { amount: 5 }, { amount: '1.5' }]) {
    const tokens = [{ accountIndex: 1, mint: OWNER, uiTokenAmount }]
    const block = await client(
      answer({ preTokenBalances: tokens, postTokenBalances: tokens }),
    ).block(2)
    assert.deepEqual(
      block?.transfers.map(({ amount, senders }) => [amount, senders?.complete]),
      [[3n, false]],
    )
  }
})

test('Solana: each call whose response may contain a transaction states a version', async () => {
  const options: unknown[] = []
  const shown: Answers = {
    getBlock: {
      blockhash: 'B',
      previousBlockhash: 'A',
      parentSlot: 1,
      blockHeight: 1,
      transactions: [],
    },
    getTransaction: {
      slot: 2,
      meta: { err: null, fee: 5, preBalances: [9], postBalances: [4] },
      transaction: ['AA==', 'base64'],
    },
    getSignatureStatuses: {
      context: { slot: 9 },
      value: [{ slot: 2, err: null, confirmationStatus: 'finalized' }],
    },
    getFirstAvailableBlock: 0,
    getEpochInfo: { absoluteSlot: 9000, blockHeight: 9000 },
    getSignaturesForAddress: [{ signature: 'S', slot: 400 }],
    getBlocksWithLimit: [4],
  }
  const call: Fetch = async (_url, init) => {
    const { method, params } = JSON.parse(String(init.body)) as {
      method: string
      params: [unknown, Record<string, unknown>]
    }
    if (method === 'getBlock' || method === 'getTransaction')
      options.push(params[1]['maxSupportedTransactionVersion'])
    const refused = method === 'getBlock' && params[0] === 3
    return Response.json(
      refused
        ? { error: { code: -32007, message: 'Slot 3 was skipped' } }
        : { result: shown[method] ?? null },
    )
  }
  const client = new SolanaClient(net('SOL'), [], url, call)
  for (const work of [
    () => client.block(2),
    () => client.block(3),
    () => client.status('S'),
    () => client.isDead('S', 8000),
    () => client.findSigned(PAYER, 'ff', 500),
  ])
    await work().catch(() => undefined)
  assert.ok(options.length >= 5, `${options.length} calls`)
  assert.deepEqual(new Set(options), new Set([1]))
})

test('Cardano: reads payments in transactions with deeply nested data and future fields', async () => {
  const output = array([byteString(addressBytes(ADA, TO)), uint(5_000_000n)])
  const deep = Buffer.concat([Buffer.alloc(7000, 0x81), Buffer.from([0x00])])
  const odd: [string, Uint8Array[]][] = [
    [
      'an output of three kinds of money',
      [array([byteString(addressBytes(ADA, TO)), array([uint(1n), map([]), uint(2n)])])],
    ],
    ['an output that is text', [Buffer.from('6161', 'hex')]],
    [
      'an output whose amount is a float',
      [
        map([
          [uint(0n), byteString(addressBytes(ADA, TO))],
          [uint(1n), Buffer.from('fb3ff0000000000000', 'hex')],
        ]),
      ],
    ],
    ['an output of nested lists', [deep]],
  ]
  const read = async (
    outputs: Uint8Array[],
    more: [Uint8Array, Uint8Array][] = [],
    witnesses: Uint8Array = map([]),
    auxiliary: Uint8Array = Buffer.from([0xf6]),
  ) => {
    const body = map([
      [uint(0n), array([])],
      [uint(1n), array(outputs)],
      [uint(2n), uint(1n)],
      ...more,
    ])
    const txid = Buffer.from(hashOf(body)).toString('hex')
    const cbor = Buffer.concat([
      Buffer.from([0x84]),
      body,
      witnesses,
      Buffer.from([0xf5]),
      auxiliary,
    ]).toString('hex')
    const { reports, report } = collect()
    const client = new CardanoClient(
      ADA,
      url,
      async (path) =>
        Response.json(
          path.includes('/txs/cbor')
            ? [{ tx_hash: txid, cbor }]
            : {
                height: 7,
                hash: 'a'.repeat(64),
                slot: 9,
                previous_block: 'b'.repeat(64),
                tx_count: 1,
              },
        ),
      undefined,
      report,
    )
    return { body, txid, block: await client.block(7), reports }
  }
  for (const [witnesses, auxiliary] of [
    [map([[uint(4n), array([deep])]]), undefined],
    [undefined, map([[uint(1n), deep]])],
    [
      map([[uint(5n), Buffer.concat([Buffer.alloc(5000, 0x9f), Buffer.alloc(5000, 0xff)])]]),
      undefined,
    ],
  ] as const) {
    const { block, reports } = await read([output], [], witnesses, auxiliary)
    assert.deepEqual(
      block?.transfers.map(({ position, amount }) => [position, amount]),
      [[0, 5_000_000n]],
    )
    assert.deepEqual(reports, [])
  }
  const { block: later, body: laterBody } = await read(
    [output],
    [
      [uint(40n), deep],
      [Buffer.from('6161', 'hex'), uint(1n)],
    ],
  )
  assert.deepEqual(later?.transfers.length, 1)
  assert.equal(outputOf(laterBody, 0)?.coin, 5_000_000n, 'a signer node reads the coin too')
  for (const [what, outputs] of odd) {
    const { block, reports, txid, body } = await read([output, ...outputs, output])
    assert.deepEqual(
      block?.transfers.map(({ position }) => position),
      [0, 2],
      what,
    )
    assert.deepEqual(
      reports.map(({ kind, name }) => [kind, name]),
      [['transaction', txid]],
      what,
    )
    assert.equal(outputOf(body, 2)?.coin, 5_000_000n)
  }
  // Certificates of a future format make the list of senders incomplete; the transaction stays
  // readable.
  const certificate = (item: Uint8Array) =>
    map([
      [uint(0n), array([])],
      [uint(1n), array([output])],
      [uint(4n), array([item])],
    ])
  for (const item of [
    Buffer.from('6161', 'hex'),
    array([]),
    array([Buffer.from('6161', 'hex')]),
    array([uint(8n), uint(1n)]),
    deep,
  ])
    assert.deepEqual(fundingOf(certificate(item)), [null])
})

test('Tron: ignores contracts of other types, whatever they contain', async () => {
  const transfer = {
    txID: 'cd'.repeat(32),
    ret: [{ contractRet: 'SUCCESS' }],
    raw_data: {
      contract: [
        {
          type: 'TransferContract',
          parameter: {
            value: {
              owner_address: `41${'11'.repeat(20)}`,
              to_address: `41${'22'.repeat(20)}`,
              amount: 7,
            },
          },
        },
      ],
    },
  }
  const read = (odd: unknown) =>
    new TronClient(net('TRX'), [], url, async () =>
      Response.json({
        blockID: '0000000000000007'.padEnd(64, 'a'),
        block_header: { raw_data: { number: 7, parentHash: 'b'.repeat(64) } },
        transactions: [
          { ...transfer, txID: 'ef'.repeat(32), raw_data: { contract: [odd] } },
          transfer,
        ],
      }),
    ).block(7)
  for (const odd of [
    { type: 'LaterContract' },
    { type: 'LaterContract', parameter: null },
    { type: 'LaterContract', parameter: { value: null } },
    { type: 'LaterContract', parameter: { value: 'aa', type_url: 'x' } },
    {},
    null,
  ]) {
    assert.deepEqual(
      (await read(odd))?.transfers.map(({ amount }) => amount),
      [7n],
      JSON.stringify(odd),
    )
  }
  await assert.rejects(
    read({ type: 'TransferContract' }),
    /without raw_data\.contract\.parameter\.value/,
  )
})

test('XRP: reads the latest ledger without reserves, and skips unknown transaction types', async () => {
  const validated = { hash: 'L', seq: 9 }
  for (const reserves of [
    {},
    { reserve_base_xrp: null },
    { reserve_base_xrp: { drops: '1' }, reserve_inc_xrp: 'x' },
  ]) {
    const client = new XrpClient(
      net('XRP'),
      url,
      rpc({ server_info: { info: { validated_ledger: { ...validated, ...reserves } } } }),
    )
    assert.deepEqual(await client.tip(), { height: 9, hash: 'L', finalHeight: 9 })
    await assert.rejects(
      client.activation(),
      (error: unknown) => error instanceof RpcUnavailable && /reserve_base_xrp/.test(error.message),
    )
  }
  let now = 0
  const info = {
    info: { validated_ledger: { ...validated, reserve_base_xrp: 1, reserve_inc_xrp: 0.2 } },
  }
  const answers: Answers = { server_info: info }
  const client = new XrpClient(net('XRP'), url, rpc(answers), () => now)
  assert.equal(await client.activation(), 1_000_000n)
  answers['server_info'] = { info: { validated_ledger: validated } }
  now += 600_000
  assert.equal(await client.activation(), 1_000_000n, 'the last known reserve')
  const ledger = {
    validated: true,
    ledger_hash: 'L',
    ledger_index: 9,
    ledger: {
      parent_hash: 'P',
      transactions: [
        {
          hash: 'H',
          TransactionType: 'LaterType',
          metaData: { TransactionResult: 'tesLATER', AffectedNodes: [{}, { LaterNode: {} }] },
        },
      ],
    },
  }
  assert.deepEqual((await new XrpClient(net('XRP'), url, rpc({ ledger })).block(9))?.transfers, [])
})

test('UTXO: reads a block with outputs without script or amount, and with invalid other numbers', async () => {
  const LTC = net('LTC')
  const own = addressOf(LTC, [1, LTC.chain_index, 0])
  const { utxo } = await import('../../src/index.ts')
  const paid = {
    n: 1,
    value: 0.5,
    scriptPubKey: { hex: Buffer.from(utxo.scriptOf(LTC, own)).toString('hex') },
  }
  const { reports, report } = collect()
  const client = (vout: unknown[], more: object = {}) =>
    new UtxoClient(
      LTC,
      url,
      rpc({
        getblockhash: 'aa',
        getblock: {
          hash: 'aa',
          height: 7,
          previousblockhash: 'bb',
          tx: [{ txid: 't', vin: [{ txid: 'x', vout: 0 }], vout, fee: 0.000_000_000_1, ...more }],
        },
      }),
      undefined,
      report,
    )
  assert.deepEqual(
    (await client([{ n: 0, output_id: 'later' }, paid]).block(7))?.transfers.map(
      ({ position, amount }) => [position, amount],
    ),
    [[1, 50_000_000n]],
  )
  assert.deepEqual(
    reports.map(({ kind, name }) => [kind, name]),
    [['transaction', 't']],
  )
  assert.deepEqual(
    (
      await client([{ n: 0, ismweb: true, output_id: 'x' }, paid], {
        later: { fee: 'x', amount: 1e-12 },
      }).block(7)
    )?.transfers.length,
    1,
  )
  await assert.rejects(
    client([{ n: 0, value: 1 }, paid]).block(7),
    /without vout\.scriptPubKey\.hex/,
  )
})
