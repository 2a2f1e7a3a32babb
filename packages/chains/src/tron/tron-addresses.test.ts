// Tron addresses: base58check of 0x41 and the last 20 bytes of the key's Keccak-256 hash.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import * as fc from '../../../../testing/property.ts'
import { utils } from 'tronweb'
import { familyOf } from '../index.ts'
import { addressBytes, addressHex, addressOfHex } from './address.ts'
import { refuses } from '../../testing/support.ts'
import { ASSETS, TO, TRX } from '../../testing/tron-support.ts'

const { address, validate } = familyOf(TRX)
const reason = (text: string, tag?: string) => {
  const answer = validate(TRX, text, tag)
  assert.equal(answer.valid, false, text)
  return answer.valid ? '' : answer.reason
}

test('derives the published addresses', () => {
  // From Tron's documentation and block explorers: the zero address and the tokens' contracts.
  for (const [text, hex] of [
    ['T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb', '410000000000000000000000000000000000000000'],
    ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', '41a614f803b6fd780986a42c78ec9c7f77e6ded13c'],
    ['TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8', '413487b63d30b5b2c87fb7ffa8bcfade38eaac1abe'],
  ] as const) {
    assert.equal(addressHex(text), hex)
    assert.equal(addressOfHex(hex), text)
    assert.equal(addressOfHex(hex.slice(2)), text)
  }
  // Private key 1, whose address on EVM networks is 0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf.
  const one = secp256k1.getPublicKey(Buffer.from('1'.padStart(64, '0'), 'hex'), true)
  assert.equal(addressHex(address(TRX, one)), '417e5f4552091a69125d5dfcb7b8c2659029395bdf')
})

test('derives the same address as tronweb for every key', () => {
  fc.assert(
    fc.property(
      fc
        .uint8Array({ minLength: 32, maxLength: 32 })
        .filter((secret) => secp256k1.utils.isValidSecretKey(secret)),
      (secret) => {
        const text = address(TRX, secp256k1.getPublicKey(secret, true))
        assert.equal(
          text,
          utils.address.fromHex(
            utils.address.fromPrivateKey(Buffer.from(secret).toString('hex')) as string,
          ),
        )
        assert.deepEqual(validate(TRX, text), { valid: true, address: text, address_tag: null })
        assert.equal(Buffer.from(addressBytes(text)).toString('hex'), utils.address.toHex(text))
      },
    ),
    { numRuns: 100 },
  )
})

test('refuses mistyped, foreign, hexadecimal, tagged and zero addresses with a reason', () => {
  assert.ok(validate(TRX, TO).valid)
  assert.match(reason(TO.replace(/.$/, 'Z')), /checksum/)
  assert.match(reason('41a614f803b6fd780986a42c78ec9c7f77e6ded13c'), /hexadecimal/)
  assert.match(reason('0xa614f803b6fd780986a42c78ec9c7f77e6ded13c'), /hexadecimal/)
  assert.match(reason('1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa'), /another network/)
  assert.match(reason('3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy'), /another network/)
  assert.match(reason('T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb'), /zero address/)
  assert.match(reason(TO, '1'), /no address tags/)
  for (const text of [
    '',
    'T',
    ` ${TO}`,
    `${TO}\n`,
    TO.slice(1),
    `${TO}1`,
    TO.toLowerCase(),
    `1${TO}`,
    'T'.repeat(100_000),
    'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZ0',
  ])
    reason(text)
})

test('detects any changed character of an address', () => {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
  fc.assert(
    fc.property(fc.nat(TO.length - 1), fc.constantFrom(...alphabet), (at, letter) => {
      const changed = TO.slice(0, at) + letter + TO.slice(at + 1)
      assert.equal(validate(TRX, changed).valid, changed === TO)
      if (changed !== TO) refuses(() => addressBytes(changed), 'ADDRESS')
    }),
  )
})

test('contract addresses of the registry are valid', () => {
  for (const asset of ASSETS)
    if (asset.contract_address !== null)
      assert.ok(validate(TRX, asset.contract_address).valid, asset.asset_name)
})
