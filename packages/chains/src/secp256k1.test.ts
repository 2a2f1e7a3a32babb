import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import * as fc from '../../../testing/property.ts'
import { isSecp256k1, secp256k1Signer } from './secp256k1.ts'

const ORDER = secp256k1.Point.Fn.ORDER
const bytesOf = (value: bigint): Uint8Array => hexToBytes(value.toString(16).padStart(64, '0'))
const quiet = <T>(work: () => T): T | null => {
  try {
    return work()
  } catch {
    return null
  }
}
/** Returns noble's verdict on the same signature. */
const expectedOf = (signature: Uint8Array, message: Uint8Array, key: Uint8Array): boolean =>
  quiet(() => secp256k1.verify(signature, message, key, { prehash: false, lowS: true })) ?? false
const signerByNoble = (
  signature: Uint8Array,
  recoveryId: number,
  message: Uint8Array,
): string | null =>
  quiet(() => {
    const parsed = secp256k1.Signature.fromBytes(signature)
    return parsed.hasHighS()
      ? null
      : bytesToHex(parsed.addRecoveryBit(recoveryId).recoverPublicKey(message).toBytes(true))
  })
const signed = (
  secret: Uint8Array,
  message: Uint8Array,
): { signature: Uint8Array; recoveryId: 0 | 1 } => {
  const recovered = secp256k1.sign(message, secret, {
    prehash: false,
    lowS: true,
    format: 'recovered',
  })
  return { signature: recovered.slice(1), recoveryId: recovered[0] as 0 | 1 }
}

test('libsecp256k1 and noble agree on valid signatures and those with one changed bit', () => {
  fc.assert(
    fc.property(
      fc.bigInt(1n, ORDER - 1n),
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.nat(63),
      fc.nat(7),
      fc.constantFrom(
        'signature' as const,
        'key' as const,
        'message' as const,
        'id' as const,
        'none' as const,
      ),
      (secret, text, place, bit, where) => {
        const message = Uint8Array.from(text)
        const key = secp256k1.getPublicKey(bytesOf(secret), true)
        const { signature, recoveryId } = signed(bytesOf(secret), message)
        const parts = { signature, key, message }
        if (where in parts) {
          const changed = parts[where as keyof typeof parts]
          changed[place % changed.length]! ^= 1 << bit
        }
        const id = (where === 'id' ? 1 - recoveryId : recoveryId) as 0 | 1
        assert.equal(isSecp256k1(signature, message, key), expectedOf(signature, message, key))
        const signer = secp256k1Signer(signature, id, message)
        assert.equal(signer && bytesToHex(signer), signerByNoble(signature, id, message))
        if (where === 'none') assert.equal(signer && bytesToHex(signer), bytesToHex(key))
      },
    ),
  )
})

test('refuses signatures with high s, with s or r out of range, and of other lengths', () => {
  const [secret, message] = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(9)]
  const key = secp256k1.getPublicKey(secret, true)
  const { signature, recoveryId } = signed(secret, message)
  assert.equal(isSecp256k1(signature, message, key), true)
  const r = signature.slice(0, 32)
  const s = BigInt(`0x${bytesToHex(signature.slice(32))}`)
  const of = (first: Uint8Array, second: Uint8Array): Uint8Array =>
    Uint8Array.from([...first, ...second])
  const odd = [
    of(r, bytesOf(ORDER - s)),
    of(r, bytesOf(0n)),
    of(r, bytesOf(ORDER)),
    of(bytesOf(0n), signature.slice(32)),
    of(bytesOf(ORDER), signature.slice(32)),
    of(new Uint8Array(32).fill(255), signature.slice(32)),
    signature.subarray(1),
    of(signature, new Uint8Array(1)),
    new Uint8Array(0),
  ]
  for (const each of odd) {
    assert.equal(isSecp256k1(each, message, key), false)
    for (const id of [0, 1] as const) assert.equal(secp256k1Signer(each, id, message), null)
  }
  assert.equal(isSecp256k1(signature, message.subarray(1), key), false)
  assert.equal(isSecp256k1(signature, message, key.subarray(1)), false)
  assert.equal(secp256k1Signer(signature, recoveryId, message.subarray(1)), null)
  // The largest low s and the smallest high s, each in a signature whose key was computed to match.
  for (const [value, good] of [
    [ORDER >> 1n, true],
    [(ORDER >> 1n) + 1n, false],
  ] as const) {
    assert.equal(secp256k1Signer(of(r, bytesOf(value)), recoveryId, message) !== null, good)
  }
})
