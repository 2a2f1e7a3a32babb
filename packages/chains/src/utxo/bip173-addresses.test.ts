// BIP173 and BIP350: the published segwit addresses, valid and invalid; Base58Check (BIP13); the
// address in BIP84.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { p2pkh, p2sh, p2tr, p2wpkh, p2wsh, Address, OutScript } from '@scure/btc-signer'
import { familyOf, utxo, validateAddress, type Network, type UtxoParams } from '../index.ts'
import { BTC, local, mainnet, P2PKH, publicKeyAt } from '../../testing/support.ts'

const main = mainnet.network('BTC') as Network
const testnet: Network = {
  ...main,
  utxo: { ...(main.utxo as UtxoParams), bech32_hrp: 'tb', p2pkh_version: 111, p2sh_version: 196 },
}
const networkOf = (address: string) => (/^tb/i.test(address) ? testnet : main)
const check = (network: Network, address: string, tag?: string | null) =>
  familyOf(network).validate(network, address, tag)
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

const VALID: [string, string][] = [
  ['BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4', '0014751e76e8199196d454941c45d1b3a323f1433bd6'],
  [
    'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7',
    '00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262',
  ],
  [
    'tb1qqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesrxh6hy',
    '0020000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433',
  ],
  [
    'tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c',
    '5120000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433',
  ],
  [
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
    '512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
  ],
]
test('BIP350: accepts valid addresses of the witness versions in use', () => {
  for (const [address, script] of VALID) {
    assert.deepEqual(check(networkOf(address), address), {
      valid: true,
      address: address.toLowerCase(),
      address_tag: null,
    })
    assert.equal(hex(utxo.scriptOf(networkOf(address), address)), script)
    assert.equal(
      utxo.addressOf(networkOf(address), Buffer.from(script, 'hex')),
      address.toLowerCase(),
    )
  }
})

test('BIP350: refuses addresses of unused witness versions, with the reason', () => {
  for (const address of [
    'bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y',
    'BC1SW50QGDZ25J',
    'bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs',
  ]) {
    assert.equal(check(main, address).valid, false, address)
  }
  const answer = check(main, 'bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs')
  assert.match(answer.valid ? '' : answer.reason, /witness version/)
  // Such an output script has no address either.
  assert.equal(
    utxo.addressOf(main, Buffer.from('5210751e76e8199196d454941c45d1b3a323', 'hex')),
    null,
  )
})

const INVALID = [
  // BIP350
  'tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut',
  'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd',
  'tb1z0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqglt7rf',
  'BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL',
  'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh',
  'tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47',
  'bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4',
  'BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R',
  'bc1pw5dgrnzv',
  'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav',
  'BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P',
  'tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq',
  'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf',
  'tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j',
  'bc1gmk9yu',
  // BIP173
  'tc1qw508d6qejxtdg4y5r3zarvary0c5xw7kg3g4ty',
  'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5',
  'BC13W508D6QEJXTDG4Y5R3ZARVARY0C5XW7KN40WF2',
  'bc1rw5uspcuh',
  'bc10w508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kw5rljs90',
  'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sL5k7',
  'bc1zw508d6qejxtdg4y5r3zarvaryvqyzf3du',
  'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3pjxtptv',
  // Valid under BIP173 alone: bech32 where bech32m is required.
  'bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7k7grplx',
  'BC1SW50QA3JX3S',
  'bc1zw508d6qejxtdg4y5r3zarvaryvg6kdaj',
]
test('BIP350 and BIP173: refuses invalid addresses', () => {
  for (const address of INVALID)
    assert.equal(check(networkOf(address), address).valid, false, address)
})

test('Base58Check: accepts both address types, on their own network only', () => {
  for (const address of [
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
    '3P14159f73E4gFr7JterCCQh9QjiTjiZrG',
  ]) {
    assert.deepEqual(check(main, address), { valid: true, address, address_tag: null })
    assert.equal(check(BTC, address).valid, false)
  }
  for (const address of [
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb',
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7Divf0a',
    'mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn',
    '5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ',
  ]) {
    assert.equal(check(main, address).valid, false, address)
  }
})

test('BIP84: derives the first address of the published test key', () => {
  const key = Buffer.from(
    '0330d54fd0dd420a6e5f8d3624f5f3482cae350f79d5f0753bf5beef9c2d91af3c',
    'hex',
  )
  assert.equal(familyOf(main).address(main, key), 'bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu')
})

test('refuses an address of another network and names that network', () => {
  for (const address of [
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
    'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx',
    'ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9',
  ]) {
    const answer = validateAddress(local, 'BTC', address)
    assert.match(answer.valid ? '' : answer.reason, /another network/)
  }
})

test('refuses an address with a tag, an empty text, spaces, and a BIP21 URI', () => {
  const address = VALID[0]?.[0].toLowerCase() as string
  assert.equal(check(main, address, '1').valid, false)
  assert.equal(check(main, address, '').valid, false)
  assert.equal(check(main, address, null).valid, true)
  for (const text of [
    '',
    ' ',
    ` ${address}`,
    `${address} `,
    `${address}\n`,
    `bitcoin:${address}`,
    'x'.repeat(10_000),
    `0x${'a'.repeat(40)}`,
    address.replace('1', 'l'),
  ])
    assert.equal(check(main, text).valid, false, text)
})

test('encodes random witness programs to the same addresses as @scure/btc-signer', () => {
  const net = { bech32: 'bcrt', pubKeyHash: 111, scriptHash: 196, wif: 239 }
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.nat(1000), (program, index) => {
      const key = publicKeyAt([0, 0, index])
      for (const pay of [
        p2wpkh(key, net),
        p2pkh(key, net),
        p2sh(p2wpkh(key, net), net),
        p2wsh(p2pkh(key, net), net),
        p2tr(key.subarray(1), undefined, net),
      ]) {
        assert.deepEqual(utxo.scriptOf(BTC, pay.address as string), pay.script)
        assert.equal(utxo.addressOf(BTC, pay.script), pay.address)
      }
      assert.equal(familyOf(BTC).address(BTC, key), p2wpkh(key, net).address)
      assert.equal(familyOf(P2PKH).address(P2PKH, key), p2pkh(key, net).address)
      const wsh = Address(net).encode({ type: 'wsh', hash: program })
      assert.deepEqual(utxo.scriptOf(BTC, wsh), OutScript.encode({ type: 'wsh', hash: program }))
    }),
    { numRuns: 30 },
  )
})

test('always detects one mistyped character in an address', () => {
  const alphabet = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
  const address = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'
  for (let at = 3; at < address.length; at++) {
    for (const other of alphabet) {
      if (other !== address[at])
        assert.equal(check(main, address.slice(0, at) + other + address.slice(at + 1)).valid, false)
    }
  }
})

test('accepts any text as a valid address or refuses it with a reason', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.string().map((text) => `bcrt1${text}`),
      ),
      (text) => {
        const answer = check(BTC, text)
        if (!answer.valid) assert.ok(answer.reason.length > 0)
      },
    ),
  )
})
