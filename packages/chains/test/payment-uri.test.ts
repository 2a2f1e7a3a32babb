import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry, paymentUri, type Asset } from '../src/index.ts'

const registry = loadRegistry('mainnet')
const uri = (ticker: string, address: string, more: { addressTag?: string; amount?: bigint } = {}) => {
  const asset = registry.asset(ticker) as Asset
  return paymentUri(registry.networkOf(asset), asset, { address, ...more })
}

test('BIP21: the specification’s own examples', () => {
  // https://github.com/bitcoin/bips/blob/master/bip-0021.mediawiki: address alone, and an amount of 20.3
  assert.equal(uri('BTC', '175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W'), 'bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W')
  assert.equal(uri('BTC', '175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W', { amount: 2_030_000_000n }), 'bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W?amount=20.3')
})

test('CashAddr: the prefix is the scheme', () => {
  const address = 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'
  assert.equal(uri('BCH', address, { amount: 1n }), `${address}?amount=0.00000001`)
})

test('EIP-681: value in wei, tokens by their contract’s transfer', () => {
  const to = '0x8e23ee67d1332ad560396262c48ffbb01f93d052'
  assert.equal(uri('ETH', to, { amount: 2_014n * 10n ** 15n }), `ethereum:${to}@1?value=2014000000000000000`)
  assert.equal(uri('USDT_ETH', to, { amount: 1n }), `ethereum:0xdAC17F958D2ee523a2206206994597C13D831ec7@1/transfer?address=${to}&uint256=1`)
  assert.equal(uri('BASE', to), `ethereum:${to}@8453`)
})

test('XRP and Stellar carry the tag; 0 is one', () => {
  assert.equal(uri('XRP', 'rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B', { addressTag: '0', amount: 1_500_000n }), 'xrpl:rvYAfWj5gh67oV6fW32ZzP3Aw4Eubs59B?amount=1500000&dt=0')
  const account = 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ'
  assert.equal(uri('XLM', account, { addressTag: '42', amount: 1_205_000_000n }), `web+stellar:pay?destination=${account}&amount=120.5&memo=42&memo_type=MEMO_ID`)
  assert.equal(uri('XLM', account), `web+stellar:pay?destination=${account}`)
})
