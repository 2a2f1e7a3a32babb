// Withdrawals of validators that a block contains (EIP-4895).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EvmClient, RpcUnavailable } from '../index.ts'
import { ETH, ETH_ASSETS } from '../../testing/support.ts'

const A = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const hash = (digit: string) => `0x${digit.repeat(64)}`
const WITHDRAWAL = {
  index: '0x5f5e100',
  validatorIndex: '0x7',
  address: A.toLowerCase(),
  amount: '0x3b9aca01',
}

/** Reads a block with this list of withdrawals from a scripted endpoint. */
async function blockWith(withdrawals: unknown) {
  const block = {
    number: '0x7',
    hash: hash('1'),
    parentHash: hash('0'),
    transactions: [],
    withdrawals,
  }
  const client = new EvmClient(ETH, ETH_ASSETS, { url: 'http://node.test' }, async () =>
    Response.json({ jsonrpc: '2.0', id: 1, result: block }),
  )
  return (await client.block(7))?.transfers
}

test('a withdrawal is a payment of the native coin without a transaction and a sender', async () => {
  assert.deepEqual(await blockWith([WITHDRAWAL]), [
    {
      txid: 'withdrawal:100000000',
      position: 0,
      asset: 'ETH',
      address: A,
      amount: 1_000_000_001_000_000_000n,
      sender: null,
      senders: { addresses: [], complete: true },
      coinbase: true,
      withoutTransaction: true,
    },
  ])
})

test('withdrawals to one address have different names, and an empty one is not a payment', async () => {
  const transfers = await blockWith([
    WITHDRAWAL,
    { ...WITHDRAWAL, index: '0x5f5e101' },
    { ...WITHDRAWAL, index: '0x5f5e102', amount: '0x0' },
  ])
  assert.deepEqual(
    transfers?.map(({ txid }) => txid),
    ['withdrawal:100000000', 'withdrawal:100000001'],
  )
})

test('a block without the list has no withdrawals', async () => {
  for (const none of [undefined, null, []]) assert.deepEqual(await blockWith(none), [])
})

test('refuses a malformed withdrawal, naming the field', async () => {
  for (const [withdrawals, problem] of [
    ['none', /withdrawals that are not a list/],
    [{}, /withdrawals that are not a list/],
    [[null], /no withdrawals\.index/],
    [[{ ...WITHDRAWAL, index: 5 }], /withdrawals\.index that is not a hexadecimal number/],
    [[{ ...WITHDRAWAL, address: undefined }], /no withdrawals\.address/],
    [[{ ...WITHDRAWAL, address: '0x12' }], /withdrawals\.address that is not an address/],
    [[{ ...WITHDRAWAL, amount: '12' }], /withdrawals\.amount that is not a hexadecimal number/],
    [[{ ...WITHDRAWAL, amount: null }], /no withdrawals\.amount/],
    [[WITHDRAWAL, WITHDRAWAL], /the withdrawal 100000000 twice/],
  ] as const)
    await assert.rejects(blockWith(withdrawals), (error: Error) => {
      assert.ok(error instanceof RpcUnavailable, String(error))
      assert.match(error.message, problem)
      return true
    })
})
