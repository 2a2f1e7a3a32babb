// TRX that contracts pay, as java-tron reports it in internal transactions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TronClient } from '../index.ts'
import { assetsOf, networkOf, TO } from '../../testing/tron-support.ts'
import { addressHex } from './address.ts'

const ID = '0000000000000007'.padEnd(64, 'a')
const TXID = 'cd'.repeat(32)
const [CALLER, CONTRACT, PAYEE] = [
  addressHex(TO),
  `41${'ab'.repeat(20)}`,
  `41${'12'.repeat(20)}`,
] as const
const note = (text: string) => Buffer.from(text).toString('hex')
const PAID = {
  hash: 'ef'.repeat(32),
  caller_address: CONTRACT,
  transferTo_address: PAYEE,
  callValueInfo: [{ callValue: 5 }],
  note: note('call'),
}

interface Script {
  type?: string
  ret?: string
  result?: string
  tokens?: boolean
  /** JSON text of `internal_transactions`; absent: the node does not store them. */
  internal?: string
  id?: string
}

/** Reads a block with one transaction from a scripted endpoint. */
async function read(script: Script) {
  const { type = 'TriggerSmartContract', ret = 'SUCCESS', internal } = script
  const transaction = {
    ret: [{ contractRet: ret }],
    txID: TXID,
    raw_data: { contract: [{ type, parameter: { value: { owner_address: CALLER } } }] },
  }
  const header = { number: 7, parentHash: 'b'.repeat(64) }
  const info = JSON.stringify({ id: script.id ?? TXID, blockNumber: 7, result: script.result })
  const paths: string[] = []
  const answers: Record<string, string> = {
    'wallet/getblockbynum': JSON.stringify({
      blockID: ID,
      block_header: { raw_data: header },
      transactions: [transaction],
    }),
    'wallet/gettransactioninfobyblocknum':
      internal === undefined
        ? `[${info}]`
        : `[${info.slice(0, -1)},"internal_transactions":${internal}}]`,
  }
  const assets = assetsOf('local').filter(({ type: kind }) => script.tokens || kind === 'native')
  const client = new TronClient(
    networkOf('local'),
    assets,
    { url: 'http://node.test' },
    async (url) => {
      const path = new URL(String(url)).pathname.slice(1)
      paths.push(path)
      return new Response(answers[path])
    },
  )
  return { transfers: (await client.block(7))?.transfers, paths }
}
const amounts = async (...entries: object[]) =>
  (await read({ internal: JSON.stringify(entries) })).transfers?.map(({ amount }) => amount)

test('TRX that a contract pays is a claim with the contract and the caller as senders', async () => {
  const base58 = (await read({ internal: JSON.stringify([PAID]) })).transfers?.[0]
  assert.ok(base58)
  const { address, sender, senders, ...rest } = base58
  assert.equal(addressHex(address), PAYEE)
  assert.equal(addressHex(sender as string), CONTRACT)
  assert.deepEqual(
    [senders?.addresses.map(addressHex), senders?.complete],
    [[CONTRACT, CALLER], true],
  )
  assert.deepEqual(rest, {
    txid: TXID,
    position: -2,
    asset: 'TRX',
    amount: 5n,
    coinbase: false,
    frame: true,
  })
})

test('reads them with and without tokens, and of transactions that create contracts', async () => {
  for (const type of ['TriggerSmartContract', 'CreateSmartContract'])
    for (const tokens of [true, false]) {
      const { transfers } = await read({ type, tokens, internal: JSON.stringify([PAID]) })
      assert.equal(transfers?.length, 1, `${type} ${tokens}`)
    }
  const { transfers, paths } = await read({
    type: 'VoteWitnessContract',
    internal: JSON.stringify([PAID]),
  })
  assert.deepEqual([transfers, paths], [[], ['wallet/getblockbynum']])
})

test('counts positions by entry, and amounts beyond 2^53 and in strings exactly', async () => {
  const large = '9007199254740993'
  const entries = [PAID, { ...PAID, rejected: true }, PAID].map((each) => JSON.stringify(each))
  const text = `[${entries.join(',')}]`.replaceAll('"callValue":5', `"callValue":${large}`)
  const transfers = (await read({ internal: text })).transfers
  assert.deepEqual(
    transfers?.map(({ position, amount }) => [position, amount]),
    [
      [-2, BigInt(large)],
      [-4, BigInt(large)],
    ],
  )
  assert.deepEqual(await amounts({ ...PAID, callValueInfo: [{ callValue: large }] }), [
    BigInt(large),
  ])
})

test('counts only TRX that moved: no tokens, rejected calls, and stake that is lent', async () => {
  for (const change of [
    { rejected: true },
    { callValueInfo: [{ callValue: 5, tokenId: '1002000' }] },
    { callValueInfo: [{}] },
    { callValueInfo: [{ callValue: 0 }] },
    { note: note('delegateResourceOfEnergy') },
    { note: note('unDelegateResourceOfEnergy') },
    { note: note('create') },
    { note: undefined },
    { transferTo_address: CONTRACT },
  ])
    assert.deepEqual(await amounts({ ...PAID, ...change }), [], JSON.stringify(change))
  assert.deepEqual(
    await amounts(
      { ...PAID, note: note('suicide') },
      { ...PAID, note: 'call' },
      { ...PAID, rejected: false },
      { ...PAID, callValueInfo: [{ callValue: 5 }, { callValue: 9, tokenId: '1002000' }] },
      { ...PAID, transferTo_address: PAYEE.slice(2) },
    ),
    [5n, 5n, 5n, 5n, 5n],
  )
})

test('a failed transaction pays nothing', async () => {
  const internal = JSON.stringify([PAID])
  for (const failed of [{ ret: 'REVERT' }, { ret: 'OUT_OF_ENERGY' }, { result: 'FAILED' }])
    assert.deepEqual((await read({ ...failed, internal })).transfers, [])
})

test('a malformed claim is left out, and the rest of the block is read', async () => {
  for (const internal of [undefined, 'null', '{}', '5', '[null,5,"x",[],{}]'])
    assert.deepEqual((await read({ internal })).transfers, [], internal)
  for (const change of [
    { transferTo_address: 5 },
    { transferTo_address: '41' },
    { transferTo_address: undefined },
    { callValueInfo: null },
    { callValueInfo: [{ callValue: '-5' }] },
    { callValueInfo: [{ callValue: -5 }] },
    { callValueInfo: [{ callValue: 5.5 }] },
    { callValueInfo: [{ callValue: 'x' }] },
    { note: 5 },
  ])
    assert.deepEqual(await amounts({ ...PAID, ...change }, PAID), [5n], JSON.stringify(change))
  const [unknown] =
    (await read({ internal: JSON.stringify([{ ...PAID, caller_address: '' }]) })).transfers ?? []
  assert.deepEqual([unknown?.sender, unknown?.senders?.complete], [null, false])
})

test('a response without the transaction makes the block unavailable', async () => {
  await assert.rejects(
    read({ id: 'ab'.repeat(32), internal: '[]' }),
    /gettransactioninfobyblocknum did not return the block at 7/,
  )
})
