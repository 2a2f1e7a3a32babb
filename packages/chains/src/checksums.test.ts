// Functions that are implemented here because they must run in browsers too, compared with the
// libraries that they replace.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 as zlibCrc32 } from 'node:zlib'
import { StrKey, MuxedAccount, Account } from '@stellar/stellar-sdk'
import * as fc from '../../../testing/property.ts'
import { crc32 } from './cardano/crc32.ts'
import { splitMuxed } from './stellar/address.ts'
import { ACCOUNT, decodeStrKey, encodeStrKey, MUXED } from './stellar/strkey.ts'

const key = fc.uint8Array({ minLength: 32, maxLength: 32 })
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

test('SEP-23: encodes and decodes an account’s address as Stellar’s library does', () => {
  fc.assert(
    fc.property(key, (bytes) => {
      const text = encodeStrKey(ACCOUNT, bytes)
      assert.equal(text, StrKey.encodeEd25519PublicKey(Buffer.from(bytes)))
      assert.deepEqual(decodeStrKey(ACCOUNT, 32, text), Uint8Array.from(bytes))
      assert.equal(decodeStrKey(MUXED, 40, text), null)
    }),
  )
})

test('SEP-23: decodes a muxed address as Stellar’s library does', () => {
  fc.assert(
    fc.property(key, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (bytes, id) => {
      const account = StrKey.encodeEd25519PublicKey(Buffer.from(bytes))
      const text = new MuxedAccount(new Account(account, '0'), id.toString()).accountId()
      assert.deepEqual(splitMuxed(text), { account, id: id.toString() })
    }),
  )
})

test('SEP-23: refuses changed, truncated, longer and lower-case addresses, as the library does', () => {
  const change = fc.oneof(
    fc.tuple(fc.nat(55), fc.nat(31)).map(
      ([at, to]) =>
        (text: string) =>
          text.slice(0, at) + BASE32[to] + text.slice(at + 1),
    ),
    fc.nat(55).map((at) => (text: string) => text.slice(0, at)),
    fc.nat(31).map((more) => (text: string) => text + BASE32[more]),
    fc.constant((text: string) => text.toLowerCase()),
    fc.string().map((other) => () => other),
  )
  fc.assert(
    fc.property(key, change, (bytes, changed) => {
      const text = changed(encodeStrKey(ACCOUNT, bytes))
      assert.equal(
        decodeStrKey(ACCOUNT, 32, text) !== null,
        StrKey.isValidEd25519PublicKey(text),
        text,
      )
      assert.equal(splitMuxed(text) !== null, StrKey.isValidMed25519PublicKey(text), text)
    }),
  )
})

test('calculates the same CRC-32 as zlib', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.equal(crc32(bytes), zlibCrc32(bytes))
    }),
  )
})
