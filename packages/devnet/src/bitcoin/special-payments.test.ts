import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import * as libauth from '@bitauth/libauth'
import { key } from '../../testing/bitcoin-keys.ts'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

/**
 * Payments in formats that only one chain has: the responses of Dash, Bitcoin Cash and Litecoin
 * nodes, before and after a restart.
 */
const home = tempHome()
let devnet: Running
before(async () => {
  devnet = await startDevnet(home)
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

async function rpc<T>(code: string, method: string, ...params: unknown[]): Promise<T> {
  const answer = await fetch(`${devnet.url}/${code.toLowerCase()}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const { result, error } = (await answer.json()) as {
    result: T
    error?: { code: number; message: string }
  }
  if (error) throw Object.assign(new Error(error.message), { code: error.code })
  return result
}
const special = (network: string, more: object) =>
  devnet.control<{ hash: string }>({ command: 'special', network, ...more })
const newAddress = (code: string) => rpc<string>(code, 'getnewaddress')
const double = (hex: string) =>
  createHash('sha256')
    .update(createHash('sha256').update(Buffer.from(hex, 'hex')).digest())
    .digest()
    .reverse()
    .toString('hex')

interface TransactionJson {
  txid: string
  hex: string
  version: number
  type?: number
  vin: Record<string, unknown>[]
  confirmations?: number
  extraPayload?: string
  extraPayloadSize?: number
  vout: {
    value: number
    n: number
    ismweb?: boolean
    scriptPubKey?: { hex: string; address?: string }
    tokenData?: {
      category: string
      amount: string
      nft?: object
    }
  }[]
  assetUnlockTx?: { fee: number }
  cbTx?: { height: number }
}

test('DASH: an asset unlock pays an address, and its output can be spent like any other', async () => {
  const address = await newAddress('DASH')
  const { hash } = await special('DASH', { kind: 'asset-unlock', address, amount: '1.5' })
  const shown = await rpc<TransactionJson>('DASH', 'getrawtransaction', hash, true)
  assert.deepEqual(
    [shown.version, shown.type, shown.vin, shown.extraPayloadSize, shown.assetUnlockTx?.fee],
    [3, 9, [], 145, 190],
  )
  assert.deepEqual(
    shown.vout.map(({ value, scriptPubKey }) => [value, scriptPubKey?.address]),
    [[1.5, address]],
  )
  // DIP-2: the id is a hash that includes the payload at the end of the transaction.
  assert.equal(double(shown.hex), hash)
  assert.ok(
    shown.hex.startsWith('0300090000') && shown.hex.endsWith(`91${shown.extraPayload}`),
    shown.hex,
  )
  const spent = await rpc<string>('DASH', 'sendtoaddress', await newAddress('DASH'), 1)
  await devnet.control({ command: 'mine', network: 'DASH', blocks: 1 })
  const by = await rpc<TransactionJson>('DASH', 'getrawtransaction', spent, true)
  assert.deepEqual(
    by.vin.map(({ txid }) => txid),
    [hash],
  )
  assert.equal(by.confirmations, 1)
})

test('DASH: coinbase transactions have a payload with their height', async () => {
  const { hash, height } = await devnet.control<{ hash: string; height: number }>({
    command: 'mine',
    network: 'DASH',
    blocks: 1,
  })
  const {
    tx: [coinbase],
  } = await rpc<{ tx: TransactionJson[] }>('DASH', 'getblock', hash, 2)
  assert.deepEqual(
    [coinbase?.version, coinbase?.type, coinbase?.cbTx?.height, coinbase?.extraPayloadSize],
    [3, 5, height, 70],
  )
  assert.equal(double(coinbase!.hex), coinbase!.txid)
})

test('DASH: a reorganisation returns an asset unlock to the pool', async () => {
  const { hash } = await special('DASH', {
    kind: 'asset-unlock',
    address: await newAddress('DASH'),
    amount: '1',
  })
  await devnet.control({ command: 'reorg', network: 'DASH', depth: 1 })
  assert.ok((await rpc<string[]>('DASH', 'getrawmempool')).includes(hash))
  await devnet.control({ command: 'mine', network: 'DASH', blocks: 1 })
  assert.equal(
    (await rpc<TransactionJson>('DASH', 'getrawtransaction', hash, true)).confirmations,
    1,
  )
})

test('BCH: lists the token of an output separately; only the raw transaction has its prefix', async () => {
  const keyHash = createHash('ripemd160')
    .update(createHash('sha256').update(key(7).publicKey).digest())
    .digest()
  const script = Buffer.concat([Buffer.from('76a914', 'hex'), keyHash, Buffer.from('88ac', 'hex')])
  const { address } = libauth.lockingBytecodeToCashAddress({
    bytecode: Uint8Array.from(script),
    prefix: 'bchreg',
  }) as { address: string }
  const forms: [object, object, { amount: bigint; nft?: object }][] = [
    [{ tokens: '5' }, { amount: '5' }, { amount: 5n }],
    [
      { tokens: '9223372036854775807' },
      { amount: '9223372036854775807' },
      { amount: 9_223_372_036_854_775_807n },
    ],
    [
      { nft: 'minting', commitment: 'c0ffee' },
      { amount: '0', nft: { capability: 'minting', commitment: 'c0ffee' } },
      { amount: 0n, nft: { capability: 'minting', commitment: Uint8Array.of(0xc0, 0xff, 0xee) } },
    ],
    [
      { nft: 'none', tokens: '300' },
      { amount: '300', nft: { capability: 'none', commitment: '' } },
      { amount: 300n, nft: { capability: 'none', commitment: Uint8Array.of() } },
    ],
  ]
  for (const [more, json, token] of forms) {
    const { hash } = await special('BCH', { kind: 'token', address, amount: '0.00001', ...more })
    const shown = await rpc<TransactionJson>('BCH', 'getrawtransaction', hash, true)
    const output = shown.vout.find(({ scriptPubKey }) => scriptPubKey?.address === address)
    assert.ok(output?.tokenData, JSON.stringify(shown.vout))
    const { category, ...rest } = output.tokenData
    assert.equal(
      category,
      shown.vin[0]?.['txid'],
      'a token’s category is the transaction that its first input spends from',
    )
    assert.deepEqual(rest, json)
    assert.equal(output.scriptPubKey?.hex, script.toString('hex'))
    // Another implementation reads the same token from the bytes.
    const decoded = libauth.decodeTransaction(Uint8Array.from(Buffer.from(shown.hex, 'hex')))
    assert.ok(typeof decoded !== 'string', String(decoded))
    assert.deepEqual(decoded.outputs[output.n]?.token, {
      category: Uint8Array.from(Buffer.from(category, 'hex')),
      ...token,
    })
    assert.deepEqual(
      (await rpc<TransactionJson['vout'][number]>('BCH', 'gettxout', hash, output.n)).tokenData,
      output.tokenData,
    )
  }
})

test('LTC: waiting extension-block transactions hide amounts and scripts; blocks end in a HogEx', async () => {
  const address = await newAddress('LTC')
  const { hash } = await special('LTC', { kind: 'mweb', address, amount: '2' })
  const pool = await rpc<string[]>('LTC', 'getrawmempool')
  assert.ok(pool.includes(hash) && pool.length === 2, 'it and the payment that enters')
  const waiting = await rpc<TransactionJson>('LTC', 'getrawtransaction', hash, true)
  assert.ok(
    waiting.vout.every(
      ({ ismweb, scriptPubKey, value }) =>
        ismweb === true && scriptPubKey === undefined && value === undefined,
    ),
  )
  for (let round = 0; round < 2; round++) {
    const block = await devnet.control<{ hash: string }>({
      command: 'mine',
      network: 'LTC',
      blocks: 1,
    })
    const { tx } = await rpc<{ tx: TransactionJson[] }>('LTC', 'getblock', block.hash, 2)
    const hogEx = tx.at(-1)!
    assert.ok(hogEx.hex.startsWith('020000000008'), 'a flag of its own')
    assert.equal(
      hogEx.vout.some((output) => output.scriptPubKey?.address === address && output.value === 2),
      round === 0,
    )
    await assert.rejects(rpc('LTC', 'getrawtransaction', hash, true), { code: -5 })
    assert.deepEqual(await rpc('LTC', 'getrawmempool'), [])
    if (round === 0) await special('LTC', { kind: 'mweb' })
    else assert.equal(hogEx.vin.length, 1, 'it spends the one before')
  }
})

test('refuses an invalid special payment, or that of another chain, in one sentence', async () => {
  const address = await newAddress('BCH')
  const wrong: [string, object, RegExp][] = [
    ['BTC', { kind: 'token' }, /has no special payments: one of LTC, DASH, BCH, ETH, .*TRX/],
    ['DASH', { kind: 'mweb' }, /kind "mweb" is unknown on DASH: only asset-unlock/],
    ['BCH', { kind: 'token', address, amount: '0.00001' }, /tokens or nft is required/],
    [
      'BCH',
      { kind: 'token', address, amount: '0.00001', nft: 'x' },
      /nft "x" must be none, mutable or minting/,
    ],
    [
      'BCH',
      { kind: 'token', address, amount: '0.00001', tokens: '5', commitment: 'aa' },
      /commitment requires nft/,
    ],
    ['BCH', { kind: 'token', address, amount: '0.00000001', tokens: '5' }, /is dust/],
    ['LTC', { kind: 'mweb', tokens: '5' }, /not supported on LTC/],
  ]
  for (const [network, more, message] of wrong)
    await assert.rejects(special(network, more), message)
})

test('all blocks and transactions exist after a restart', async () => {
  const heads = async () =>
    Promise.all(['DASH', 'BCH', 'LTC'].map((code) => rpc<string>(code, 'getbestblockhash')))
  const expected = await heads()
  await devnet.stop()
  devnet = await startDevnet(home)
  assert.deepEqual(await heads(), expected)
})
