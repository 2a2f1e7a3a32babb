import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'
import * as fc from '../../../testing/property.ts'

import { derivePublicKey, ThresholdError } from './index.ts'

interface Vector {
  publicKey: string
  chainCode: string
  levels: { index: number; tweak: string; publicKey: string; chainCode: string }[]
}

const { vectors } = JSON.parse(
  readFileSync(new URL('../testing/vectors/ed25519-derivation.json', import.meta.url), 'utf8'),
) as { vectors: Vector[] }

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'))
const L = ed25519.Point.Fn.ORDER

function littleEndian(input: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(input).reverse().toString('hex')}`)
}

/** A second implementation of the README's formula, with noble and OpenSSL. */
function child(publicKey: Uint8Array, chainCode: Uint8Array, index: number) {
  const data = Buffer.alloc(36)
  data.set(publicKey)
  data.writeUInt32BE(index, 32)
  const output = createHmac('sha512', chainCode).update(data).digest()
  const tweak = littleEndian(output.subarray(0, 32)) % L
  const point = ed25519.Point.fromBytes(publicKey).add(ed25519.Point.BASE.multiply(tweak))
  return { tweak, publicKey: point.toBytes(), chainCode: new Uint8Array(output.subarray(32)) }
}

for (const [i, vector] of vectors.entries()) {
  test(`derives fixed test vector ${i + 1}`, () => {
    let publicKey: Uint8Array = bytes(vector.publicKey)
    let chainCode: Uint8Array = bytes(vector.chainCode)
    for (const [depth, level] of vector.levels.entries()) {
      const path = vector.levels.slice(0, depth + 1).map(({ index }) => index)
      const derived = derivePublicKey(
        'ed25519',
        bytes(vector.publicKey),
        bytes(vector.chainCode),
        path,
      )
      assert.equal(Buffer.from(derived).toString('hex'), level.publicKey)
      const again = child(publicKey, chainCode, level.index)
      assert.equal(again.tweak.toString(16).padStart(64, '0'), level.tweak)
      assert.equal(Buffer.from(again.publicKey).toString('hex'), level.publicKey)
      assert.equal(Buffer.from(again.chainCode).toString('hex'), level.chainCode)
      ;({ publicKey, chainCode } = again)
    }
  })
}

test('derives the same keys as a second implementation of the formula on random paths', () => {
  const start = {
    publicKey: ed25519.Point.BASE.multiply(12345n).toBytes(),
    chainCode: new Uint8Array(32).fill(9),
  }
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 0x7fffffff }), { maxLength: 5 }), (path) => {
      const expected = path.reduce(
        (key, index) => child(key.publicKey, key.chainCode, index),
        start,
      )
      assert.deepEqual(
        Buffer.from(derivePublicKey('ed25519', start.publicKey, start.chainCode, path)),
        Buffer.from(expected.publicKey),
      )
    }),
    { numRuns: 100 },
  )
})

test('refuses points outside the prime-order group, and other encodings', () => {
  const torsion = ed25519.Point.fromHex(
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  )
  const refused = [
    torsion.toBytes(),
    ed25519.Point.BASE.add(torsion).toBytes(),
    ed25519.Point.ZERO.toBytes(),
    // y = p + 1, a second encoding of the neutral element
    bytes('eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f'),
    bytes('02'.padEnd(64, '0')),
    new Uint8Array(31),
  ]
  for (const publicKey of refused) {
    assert.throws(
      () => derivePublicKey('ed25519', publicKey, new Uint8Array(32), [0]),
      (error) => error instanceof ThresholdError && error.code === 'BAD_ARGUMENT',
    )
  }
})
