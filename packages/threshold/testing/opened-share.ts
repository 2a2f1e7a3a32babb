import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import type { KeyMaterial } from '../src/index.ts'
import { hash } from './helpers.ts'
import { bytes, fixed, list, parse, partOf, struct, varint, type Part } from './postcard.ts'

/** Secrets of a compromised node: its share in plaintext. */
const SCALAR = bytes(32)
const POINT = bytes(33)
const HASH = fixed(32)
const SEALED_PLAIN = struct({
  engine_version: bytes(),
  public_key: bytes(33),
  chain_code: HASH,
  state: bytes(),
})
const PARTY = struct({
  threshold: fixed(1),
  share_count: fixed(1),
  party_index: fixed(1),
  session_id: bytes(32),
  poly_point: SCALAR,
  pk: POINT,
  zero_seeds: list(2, struct({ lowest: fixed(1), counterparty: fixed(1), seed: HASH })),
  mul_senders: list(
    2,
    struct({
      party: fixed(1),
      public_gadget: list(416, SCALAR),
      correlation: list(256, fixed(1)),
      seeds: list(256, HASH),
    }),
  ),
  mul_receivers: list(
    2,
    struct({
      party: fixed(1),
      public_gadget: list(416, SCALAR),
      seeds0: list(256, HASH),
      seeds1: list(256, HASH),
    }),
  ),
  derivation: struct({
    depth: fixed(1),
    child_number: varint,
    fingerprint: fixed(4),
    poly_point: SCALAR,
    pk: POINT,
    chain_code: HASH,
  }),
  address: bytes(),
})

/** The key that seals shares: of a home or, without a name, of a key file. */
export interface SealingKey {
  name?: string
  key: Uint8Array
}

export interface OpenedShare {
  key: KeyMaterial
  plain: Buffer
  party: Buffer
  parts: ReadonlyMap<string, Part>
}

const NONCE = 12
const WRAPPED = 48

function associated({ engine, curve, party, keyId, epoch }: KeyMaterial, purpose: string): Buffer {
  const number = Buffer.alloc(4)
  number.writeUInt32BE(epoch)
  return hash(
    'custody/threshold/share/v1',
    ...[purpose, engine, curve].map((text) => Buffer.from(text)),
    Buffer.from([party]),
    Buffer.from(keyId),
    number,
  )
}

function decrypt(key: Uint8Array, nonce: Uint8Array, aad: Buffer, sealed: Uint8Array): Buffer {
  const cipher = createDecipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(aad).setAuthTag(sealed.subarray(sealed.length - 16))
  return Buffer.concat([cipher.update(sealed.subarray(0, sealed.length - 16)), cipher.final()])
}

function encrypt(key: Uint8Array, nonce: Uint8Array, aad: Buffer, plain: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(aad)
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

const wrapPurpose = ({ name }: SealingKey): string => (name === undefined ? 'wrap' : `wrap/${name}`)
const headOf = ({ name }: SealingKey): Buffer =>
  name === undefined
    ? Buffer.from('TSS1')
    : Buffer.concat([Buffer.from('TSS2'), Buffer.from(name, 'hex')])

/**
 * Returns the plaintext of a sealed secp256k1 share, as `vault.rs` and `dkls.rs` define its layout.
 */
export function openShare(sealing: SealingKey, key: KeyMaterial): OpenedShare {
  const sealed = Buffer.from(key.sealedShare)
  const head = headOf(sealing)
  if (!sealed.subarray(0, head.length).equals(head))
    throw new Error('the share is sealed under another key')
  let at = head.length
  const next = (length: number): Buffer => sealed.subarray(at, (at += length))
  const dataKey = decrypt(
    sealing.key,
    next(NONCE),
    associated(key, wrapPurpose(sealing)),
    next(WRAPPED),
  )
  const plain = decrypt(dataKey, next(NONCE), associated(key, 'share'), sealed.subarray(at))
  const state = partOf(parse(plain, SEALED_PLAIN), 'state')
  const party = plain.subarray(state.from, state.end)
  return { key, plain, party, parts: parse(party, PARTY) }
}

function valueOf(share: OpenedShare, name: string): Buffer {
  const { from, end } = partOf(share.parts, name)
  return share.party.subarray(from, end)
}

const ORDER = secp256k1.Point.Fn.ORDER
export const toScalar = (value: bigint): Buffer =>
  Buffer.from((((value % ORDER) + ORDER) % ORDER).toString(16).padStart(64, '0'), 'hex')
export const ofScalar = (value: Uint8Array): bigint =>
  BigInt(`0x${Buffer.from(value).toString('hex')}`)

/**
 * Returns the same key with another share: `by` is added to the secret in both of its places, so
 * that `load` accepts it.
 */
export function shiftedShare(sealing: SealingKey, key: KeyMaterial, by = 1n): KeyMaterial {
  const share = openShare(sealing, key)
  for (const name of ['poly_point', 'derivation.poly_point']) {
    const { from } = partOf(share.parts, name)
    toScalar(ofScalar(valueOf(share, name)) + by).copy(share.party, from)
  }
  const dataKey = randomBytes(32)
  const [wrapNonce, nonce] = [randomBytes(NONCE), randomBytes(NONCE)]
  const sealedShare = Buffer.concat([
    headOf(sealing),
    wrapNonce,
    encrypt(sealing.key, wrapNonce, associated(key, wrapPurpose(sealing)), dataKey),
    nonce,
    encrypt(dataKey, nonce, associated(key, 'share'), share.plain),
  ])
  return { ...key, sealedShare: new Uint8Array(sealedShare) }
}

/** Returns the public key and chain code at a path (BIP32, CKDpub). */
function childOf(
  share: OpenedShare,
  path: readonly number[],
): { publicKey: Buffer; chainCode: Buffer } {
  let [publicKey, chainCode] = [valueOf(share, 'pk'), valueOf(share, 'derivation.chain_code')]
  for (const index of path) {
    const number = Buffer.alloc(4)
    number.writeUInt32BE(index)
    const digest = createHmac('sha512', chainCode).update(publicKey).update(number).digest()
    const moved = secp256k1.Point.fromBytes(publicKey).add(
      secp256k1.Point.BASE.multiply(ofScalar(digest.subarray(0, 32))),
    )
    ;[publicKey, chainCode] = [Buffer.from(moved.toBytes(true)), digest.subarray(32)]
  }
  return { publicKey, chainCode }
}

// ---- OT extension (ot/extension.rs), as its receiver computes it --------------------------------

export const COLUMNS = 256
export const ROW_BYTES = 78
const CHECK_BYTES = 26

/** Parameters of one signing session, besides the content of its frames. */
export interface Signing {
  share: OpenedShare
  path: readonly number[]
  digest: Uint8Array
}

/** Returns the honest node's secret bits by column, if the test has that node's share. */
export function correlationOf(share: OpenedShare, cheat: number): number[] {
  const at = [0, 1].find((index) => valueOf(share, `mul_senders.${index}.party`)[0] === cheat)
  return Array.from(
    { length: COLUMNS },
    (_, column) => valueOf(share, `mul_senders.${at}.correlation.${column}`)[0]!,
  )
}

const DEGREE = BigInt(CHECK_BYTES * 8)
const MASK = (1n << DEGREE) - 1n
const littleEndian = (data: Uint8Array): bigint => ofScalar(Buffer.from(data).reverse())
const fieldBytes = (value: bigint): Buffer =>
  Buffer.from(value.toString(16).padStart(CHECK_BYTES * 2, '0'), 'hex').reverse()

/**
 * Returns a function that multiplies by a constant in the field of 2^208 elements modulo X^208 +
 * X^9 + X^3 + X + 1, with a table for each half byte.
 */
function times(factor: bigint): (value: Buffer) => bigint {
  const tables: bigint[][] = []
  let shifted = factor
  while (tables.length < CHECK_BYTES * 2) {
    const table = [0n]
    for (let bit = 0; bit < 4; bit++) {
      table.push(...table.map((each) => each ^ shifted))
      const next = shifted << 1n
      shifted = next >> DEGREE ? (next & MASK) ^ 0x20bn : next
    }
    tables.push(table)
  }
  return (value) =>
    value.reduce(
      (sum, byte, at) => sum ^ tables[2 * at]![byte & 15]! ^ tables[2 * at + 1]![byte >> 4]!,
      0n,
    )
}

interface OtMessage {
  nonce: Buffer
  binding: Buffer
  from: number
  to: number
  u: Buffer
}
interface OtCheck {
  x: Buffer
  t: Buffer[]
}

/**
 * Returns the verification values of a matrix `u`. A cheating party must compute them again after
 * it changed a bit, because the challenge is a hash of the matrix. `u` may differ from the matrix
 * that was sent, from which the choice bits are derived.
 */
export function otCheck(
  { share, path, digest }: Signing,
  sent: OtMessage,
  u: Buffer,
  rows: readonly number[] = Array.from({ length: COLUMNS }, (_, row) => row),
): OtCheck {
  const at = [0, 1].find((index) => valueOf(share, `mul_receivers.${index}.party`)[0] === sent.to)
  const { publicKey, chainCode } = childOf(share, path)
  const multiplication = hash(
    'dkls23/sign/mul-session/v1',
    valueOf(share, 'session_id'),
    sent.binding,
    chainCode,
    publicKey,
    digest,
    Buffer.from([sent.from, sent.to].sort()),
    Buffer.from([sent.from, sent.to]),
  )
  const session = hash(
    'dkls23/ot/extension/session/v1',
    Buffer.concat([Buffer.from('OT Extension protocol'), multiplication]),
    sent.nonce,
  )
  const number = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff])
  const padOf = (seed: Buffer, column: number): Buffer =>
    Buffer.concat(
      [0, 1, 2].map((count) =>
        hash('dkls23/ot/extension/prg/v1', session, number(column), number(count), seed),
      ),
    ).subarray(0, ROW_BYTES)
  const pad = (of: 'seeds0' | 'seeds1', row: number): Buffer =>
    padOf(valueOf(share, `mul_receivers.${at}.${of}.${row}`), row)
  const choices = xor(xor(pad('seeds0', 0), pad('seeds1', 0)), sent.u.subarray(0, ROW_BYTES))
  const [first, second] = ['chi1', 'chi2'].map((name) =>
    times(
      littleEndian(
        hash('dkls23/ot/extension/chi/v1', session, Buffer.from(name), u).subarray(0, CHECK_BYTES),
      ),
    ),
  )
  const combined = (row: Buffer): Buffer => {
    const [a, b, c] = [0, 1, 2].map((block) =>
      row.subarray(block * CHECK_BYTES, (block + 1) * CHECK_BYTES),
    )
    return fieldBytes(first!(a!) ^ second!(b!) ^ littleEndian(c!))
  }
  return { x: combined(choices), t: rows.map((row) => combined(pad('seeds0', row))) }
}

export function xor(one: Uint8Array, other: Uint8Array): Buffer {
  return Buffer.from(one.map((byte, index) => byte ^ other[index]!))
}
