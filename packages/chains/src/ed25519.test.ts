import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'
import * as fc from '../../../testing/property.ts'
import { isEd25519 } from './ed25519.ts'

test('OpenSSL and noble agree on valid signatures and on signatures with one changed bit', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uint8Array({ maxLength: 300 }),
      fc.nat(63),
      fc.nat(7),
      fc.constantFrom('signature' as const, 'key' as const, 'message' as const, 'none' as const),
      (secret, message, place, bit, where) => {
        const parts = {
          signature: ed25519.sign(message, secret),
          key: ed25519.getPublicKey(secret),
          message: Uint8Array.from(message),
          none: new Uint8Array(),
        }
        const changed = parts[where]
        if (changed.length > 0) changed[place % changed.length]! ^= 1 << bit
        let expected = false
        try {
          expected = ed25519.verify(parts.signature, parts.message, parts.key, { zip215: false })
        } catch {
          /* noble throws if the value is not a point */
        }
        assert.equal(isEd25519(parts.signature, parts.message, parts.key), expected)
      },
    ),
  )
})

test('refuses a signature of another length, and one whose s includes the group order', () => {
  const secret = new Uint8Array(32).fill(7)
  const message = new Uint8Array([1, 2, 3])
  const [signature, key] = [ed25519.sign(message, secret), ed25519.getPublicKey(secret)]
  assert.equal(isEd25519(signature, message, key), true)
  for (const odd of [signature.subarray(1), new Uint8Array(65)])
    assert.equal(isEd25519(odd, message, key), false)
  assert.equal(isEd25519(signature, message, key.subarray(1)), false)
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const s = signature.slice(32).reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n) + order
  const malleable = Uint8Array.from([
    ...signature.slice(0, 32),
    ...Array.from({ length: 32 }, (_, at) => Number((s >> BigInt(8 * at)) & 255n)),
  ])
  assert.equal(isEd25519(malleable, message, key), false)
})
