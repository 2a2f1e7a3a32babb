// The client of the Blockfrost interface: which responses it accepts and refuses, and when a
// transaction can no longer be included.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CardanoClient, RpcUnavailable, type Fetch } from '../index.ts'
import { addressBytes } from './address.ts'
import { encodeBody, encodeSigned, hashOf } from './body.ts'
import { ADA, addressAt, PATH, TO, TOKEN, TTL } from '../../testing/cardano-support.ts'

type Answers = Record<string, unknown>
const missing = {
  status_code: 404,
  error: 'Not Found',
  message: 'The requested component has not been found.',
}

/** An endpoint with fixed responses by path; a function is called for each request. */
function client(answers: Answers, seen: { path: string; init: RequestInit }[] = []): CardanoClient {
  const fetch: Fetch = async (url, init) => {
    const path = url.replace('https://ada.example/api', '')
    seen.push({ path, init })
    const result = answers[path.split('?')[0] as string]
    const answer =
      typeof result === 'function' ? (result as (path: string) => unknown)(path) : result
    if (answer instanceof Response) return answer
    if (answer === undefined) return Response.json(missing, { status: 404 })
    return Response.json(answer)
  }
  return new CardanoClient(
    ADA,
    { url: 'https://ada.example/api/', headers: { project_id: 'secret' } },
    fetch,
  )
}
const unavailable = (work: Promise<unknown>, message?: RegExp) =>
  assert.rejects(
    work,
    (error: Error) => error instanceof RpcUnavailable && (message?.test(error.message) ?? true),
  )
const block = (height: number, more: Record<string, unknown> = {}) => ({
  height,
  hash: height.toString(16).padStart(64, '0'),
  slot: height * 20,
  previous_block: (height - 1).toString(16).padStart(64, '0'),
  tx_count: 0,
  ...more,
})
const body = encodeBody({
  inputs: [{ txid: '1'.repeat(64), index: 0 }],
  outputs: [
    { address: addressBytes(ADA, TO), coin: 5_000_000n, assets: new Map() },
    {
      address: addressBytes(ADA, addressAt(PATH)),
      coin: 2_000_000n,
      assets: new Map([[TOKEN, 9n]]),
    },
  ],
  fee: 200_000n,
  ttl: TTL,
})
const txid = Buffer.from(hashOf(body)).toString('hex')
const cbor = Buffer.from(encodeSigned(body, [])).toString('hex')

test('sends the API key with every request, and refuses an endpoint of another network', async () => {
  const seen: { path: string; init: RequestInit }[] = []
  await client({ '/genesis': { network_magic: 764_824_073 } }, seen).probe()
  assert.equal(new Headers(seen[0]?.init.headers).get('project_id'), 'secret')
  await assert.rejects(client({ '/genesis': { network_magic: 1 } }).probe(), {
    code: 'WRONG_NETWORK',
  })
})

test('reads the outputs and tokens of a block from the transactions’ bytes, page by page', async () => {
  const hash = block(7).hash
  const many = Array.from({ length: 101 }, (_, at) => {
    if (at === 0) return { tx_hash: txid, cbor }
    const other = encodeBody({
      inputs: [{ txid: '1'.repeat(64), index: at }],
      outputs: [{ address: addressBytes(ADA, TO), coin: 5_000_000n, assets: new Map() }],
      fee: 200_000n,
      ttl: TTL,
    })
    return {
      tx_hash: Buffer.from(hashOf(other)).toString('hex'),
      cbor: Buffer.from(encodeSigned(other, [])).toString('hex'),
    }
  })
  const pages = (path: string) => (path.includes('page=2') ? many.slice(100) : many.slice(0, 100))
  const answer = await client({
    '/blocks/7': block(7, { tx_count: 101 }),
    [`/blocks/${hash}/txs/cbor`]: pages,
  }).block(7)
  assert.equal(answer?.txids.length, 101)
  assert.deepEqual(answer?.transfers.slice(0, 2), [
    {
      txid,
      position: 0,
      asset: 'ADA',
      address: TO,
      amount: 5_000_000n,
      sender: null,
      senders: null,
      coinbase: false,
    },
    {
      txid,
      position: 1,
      asset: 'ADA',
      address: addressAt(PATH),
      amount: 2_000_000n,
      sender: null,
      senders: null,
      coinbase: false,
      riders: { assets: { [TOKEN]: '9' }, script_bytes: 0 },
    },
  ])
  assert.equal(await client({}).block(7), null)
})

test('refuses implausible responses', async () => {
  const { hash } = block(7)
  const of = (answers: Answers) =>
    client({ '/blocks/7': block(7, { tx_count: 1 }), ...answers }).block(7)
  await unavailable(of({ [`/blocks/${hash}/txs/cbor`]: [] }), /fewer transactions/)
  await unavailable(of({}), /fewer transactions/)
  await unavailable(
    of({ [`/blocks/${hash}/txs/cbor`]: [{ tx_hash: 'ff'.repeat(32), cbor }] }),
    /belong to another transaction/,
  )
  await unavailable(
    of({ [`/blocks/${hash}/txs/cbor`]: [{ tx_hash: txid, cbor: `${cbor.slice(0, -2)}` }] }),
    /belong to another transaction/,
  )
  await unavailable(
    of({ [`/blocks/${hash}/txs/cbor`]: [{ tx_hash: txid, cbor: 'zz' }] }),
    /hex|not that/,
  )
  await unavailable(client({ '/blocks/7': block(8) }).block(7), /another height/)
  // If the number of transactions is missing or contradicted, the block is not treated as empty.
  for (const count of [undefined, null, '0', -1])
    await unavailable(
      client({ '/blocks/7': block(7, { tx_count: count }) }).block(7),
      /without tx_count/,
    )
  await unavailable(
    client({ '/blocks/7': block(7, { tx_count: 0, output: '5000000' }) }).block(7),
    /with output and without transactions/,
  )
  await unavailable(
    client({
      '/blocks/7': block(7, { tx_count: 2 }),
      [`/blocks/${hash}/txs/cbor`]: [
        { tx_hash: txid, cbor },
        { tx_hash: txid, cbor },
      ],
    }).block(7),
    /contains 1 transactions, but its count is 2/,
  )
  await unavailable(
    client({ '/blocks/latest': { height: null, hash: null, slot: null } }).tip(),
    /no height/,
  )
  await unavailable(
    client({ '/blocks/7': new Response('<html>not found</html>', { status: 404 }) }).block(7),
    /not JSON/,
  )
  await unavailable(
    client({ '/blocks/7': new Response('{"message":"no route"}', { status: 404 }) }).block(7),
    /not in the format of Blockfrost/,
  )
  await unavailable(
    client({
      '/blocks/7': new Response(JSON.stringify({ status_code: 402, message: 'limit' }), {
        status: 402,
      }),
    }).block(7),
    /402 limit/,
  )
  await unavailable(
    client({ '/epochs/latest/parameters': { min_fee_a: 44, min_fee_b: 155381.5 } }).parameters(),
    /whole number/,
  )
})

test('returns a previous transaction only if its bytes match its hash', async () => {
  assert.equal(
    await client({ [`/txs/${txid}/cbor`]: { cbor } }).transactionBody(txid),
    Buffer.from(body).toString('hex'),
  )
  await unavailable(
    client({
      [`/txs/${txid}/cbor`]: { cbor: cbor.replace('1a004c4b40', '1a004c4b41') },
    }).transactionBody(txid),
  )
})

test('reports a transaction as included, waiting, absent, or included with a failed script', async () => {
  const answer = { block: '00', block_height: 5, fees: '170000', valid_contract: true }
  assert.deepEqual(await client({ [`/txs/${txid}`]: answer }).status(txid), {
    state: 'included',
    height: 5,
    blockHash: '00',
    succeeded: true,
    fee: 170_000n,
  })
  assert.deepEqual(
    await client({ [`/txs/${txid}`]: { ...answer, valid_contract: false } }).status(txid),
    { state: 'included', height: 5, blockHash: '00', succeeded: false, fee: 170_000n },
  )
  assert.deepEqual(await client({ [`/mempool/${txid}`]: { tx: {} } }).status(txid), {
    state: 'mempool',
  })
  assert.deepEqual(await client({}).status(txid), { state: 'absent' })
  assert.deepEqual(
    await client({
      [`/mempool/${txid}`]: new Response(
        JSON.stringify({ status_code: 400, message: 'Invalid path' }),
        { status: 400 },
      ),
    }).status(txid),
    { state: 'absent' },
  )
  await unavailable(
    client({ [`/mempool/${txid}`]: new Response('', { status: 502 }) }).status(txid),
  )
  // A block includes the transaction between the two requests: the result is included, never
  // absent.
  const answers: Answers = {}
  answers[`/mempool/${txid}`] = () => {
    answers[`/txs/${txid}`] = answer
    return new Response(JSON.stringify({ status_code: 404, message: 'not found' }), { status: 404 })
  }
  assert.equal((await client(answers).status(txid)).state, 'included')
})

test('broadcasts the bytes unchanged; only an error about the transaction is a rejection', async () => {
  const seen: { path: string; init: RequestInit }[] = []
  assert.deepEqual(await client({ '/tx/submit': txid }, seen).broadcast(cbor), { kind: 'accepted' })
  assert.equal(Buffer.from(seen[0]?.init.body as Uint8Array).toString('hex'), cbor)
  assert.deepEqual(
    await client({ '/tx/submit': new Response(JSON.stringify(txid), { status: 202 }) }).broadcast(
      cbor,
    ),
    { kind: 'accepted' },
  )
  const answered = async (status: number) =>
    (
      await client({
        '/tx/submit': new Response(JSON.stringify({ status_code: status, message: 'no' }), {
          status,
        }),
      }).broadcast(cbor)
    ).kind
  assert.deepEqual(
    [
      await answered(400),
      await answered(425),
      await answered(403),
      await answered(429),
      await answered(500),
    ],
    ['rejected', 'rejected', 'unknown', 'unknown', 'unknown'],
  )
})

test('a transaction is expired only if a final block is past its expiry and it is absent', async () => {
  const latest = block(1015)
  const answers = {
    '/blocks/latest': latest,
    '/blocks/1001': block(1001),
    [`/blocks/${block(1001).hash}`]: block(1001),
  }
  assert.equal(await client(answers).isDead(txid, 1001 * 20), true)
  assert.equal(await client(answers).isDead(txid, 1001 * 20 + 1), false)
  assert.equal(await client({ ...answers, [`/mempool/${txid}`]: {} }).isDead(txid, 20_000), false)
  assert.equal(
    await client({
      ...answers,
      [`/txs/${txid}`]: { block: '00', block_height: 5, fees: '1', valid_contract: true },
    }).isDead(txid, 20_000),
    false,
  )
  // An endpoint whose history changed between the requests proves nothing.
  assert.equal(
    await client({ ...answers, [`/blocks/${block(1001).hash}`]: undefined }).isDead(txid, 20_000),
    false,
  )
  assert.equal(await client({ '/blocks/latest': block(10) }).isDead(txid, 1), false)
})

test('lists the unspent outputs of an address', async () => {
  const utxos = {
    inputs: [
      { address: 'a', collateral: false },
      { address: 'b', collateral: true },
      { address: 'c', collateral: false, reference: true },
      { address: 'a', collateral: false },
    ],
    outputs: [
      {
        output_index: 0,
        amount: [{ unit: 'lovelace', quantity: '7' }],
        collateral: false,
        consumed_by_tx: null,
      },
      {
        output_index: 1,
        amount: [{ unit: 'lovelace', quantity: '8' }],
        collateral: false,
        consumed_by_tx: 'ff',
      },
      {
        output_index: 2,
        amount: [{ unit: 'lovelace', quantity: '9' }],
        collateral: true,
        consumed_by_tx: null,
      },
    ],
  }
  const reader = client({ [`/txs/${txid}/utxos`]: utxos })
  assert.deepEqual(
    [
      await reader.unspent(txid, 0),
      await reader.unspent(txid, 1),
      await reader.unspent(txid, 2),
      await reader.unspent(txid, 3),
    ],
    [7n, null, null, null],
  )
  assert.equal(await client({}).unspent(txid, 0), null)
})
