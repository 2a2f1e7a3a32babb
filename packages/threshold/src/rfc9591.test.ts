import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'

// RFC 9591, appendix E.1, recomputed from the text of the RFC with noble's group alone.
// native/src/frost/vectors.rs tests the engine and our own messages with the same file, so both
// agree with the RFC and not only with each other.

interface Participant {
  identifier: number
  share: string
  hiding_nonce_randomness?: string
  binding_nonce_randomness?: string
  hiding_nonce?: string
  binding_nonce?: string
  hiding_nonce_commitment?: string
  binding_nonce_commitment?: string
  binding_factor?: string
  signature_share?: string
}
const vectors = JSON.parse(
  readFileSync(new URL('../testing/vectors/rfc9591-ed25519.json', import.meta.url), 'utf8'),
) as {
  group_secret_key: string
  group_public_key: string
  share_polynomial_coefficient: string
  message: string
  sig: string
  participants: Participant[]
}
const { Fn, BASE, ZERO } = ed25519.Point
const CONTEXT = Buffer.from('FROST-ED25519-SHA512-v1')

const bytes = (digits: string) => Buffer.from(digits, 'hex')
const toScalar = (little: Uint8Array) =>
  Fn.create(BigInt(`0x${Buffer.from(little).reverse().toString('hex')}`))
const scalar = (digits: string) => toScalar(bytes(digits))
const written = (value: bigint) => Buffer.from(Fn.toBytes(value))
const sha512 = (...parts: Uint8Array[]) =>
  createHash('sha512').update(Buffer.concat(parts)).digest()
const h1 = (...parts: Uint8Array[]) => toScalar(sha512(CONTEXT, Buffer.from('rho'), ...parts))
const h2 = (...parts: Uint8Array[]) => toScalar(sha512(...parts))
const h3 = (...parts: Uint8Array[]) => toScalar(sha512(CONTEXT, Buffer.from('nonce'), ...parts))
const h4 = (...parts: Uint8Array[]) => sha512(CONTEXT, Buffer.from('msg'), ...parts)
const h5 = (...parts: Uint8Array[]) => sha512(CONTEXT, Buffer.from('com'), ...parts)
const hexOf = (value: bigint) => written(value).toString('hex')

test('RFC 9591, E.1: reproduces shares, nonces, binding factors and signatures', () => {
  const secret = scalar(vectors.group_secret_key)
  const publicKey = Buffer.from(BASE.multiply(secret).toBytes())
  assert.equal(publicKey.toString('hex'), vectors.group_public_key)
  for (const { identifier, share } of vectors.participants) {
    const slope = Fn.mul(scalar(vectors.share_polynomial_coefficient), BigInt(identifier))
    assert.equal(hexOf(Fn.add(secret, slope)), share)
  }
  const signers = vectors.participants.filter(
    (each): each is Required<Participant> => each.signature_share !== undefined,
  )
  assert.deepEqual(
    signers.map(({ identifier }) => identifier),
    [1, 3],
  )
  for (const each of signers) {
    assert.equal(
      hexOf(h3(bytes(each.hiding_nonce_randomness), bytes(each.share))),
      each.hiding_nonce,
    )
    assert.equal(
      hexOf(h3(bytes(each.binding_nonce_randomness), bytes(each.share))),
      each.binding_nonce,
    )
    assert.equal(BASE.multiply(scalar(each.hiding_nonce)).toHex(), each.hiding_nonce_commitment)
    assert.equal(BASE.multiply(scalar(each.binding_nonce)).toHex(), each.binding_nonce_commitment)
  }
  const message = bytes(vectors.message)
  const list = signers.flatMap((each) => [
    written(BigInt(each.identifier)),
    bytes(each.hiding_nonce_commitment),
    bytes(each.binding_nonce_commitment),
  ])
  const factorOf = ({ identifier }: Participant) =>
    h1(publicKey, h4(message), h5(...list), written(BigInt(identifier)))
  let commitment = ZERO
  for (const each of signers) {
    assert.equal(hexOf(factorOf(each)), each.binding_factor)
    const [hiding, binding] = [each.hiding_nonce_commitment, each.binding_nonce_commitment].map(
      (point) => ed25519.Point.fromHex(point),
    )
    commitment = commitment.add(hiding!).add(binding!.multiply(factorOf(each)))
  }
  const challenge = h2(commitment.toBytes(), publicKey, message)
  let response = 0n
  for (const each of signers) {
    const other = BigInt(
      signers.find(({ identifier }) => identifier !== each.identifier)!.identifier,
    )
    const lagrange = Fn.mul(other, Fn.inv(Fn.sub(other, BigInt(each.identifier))))
    const masked = Fn.add(
      scalar(each.hiding_nonce),
      Fn.mul(scalar(each.binding_nonce), factorOf(each)),
    )
    const share = Fn.add(masked, Fn.mul(Fn.mul(lagrange, scalar(each.share)), challenge))
    assert.equal(hexOf(share), each.signature_share)
    response = Fn.add(response, share)
  }
  const signature = Buffer.concat([commitment.toBytes(), written(response)])
  assert.equal(signature.toString('hex'), vectors.sig)
  assert.ok(ed25519.verify(signature, message, publicKey))
})
