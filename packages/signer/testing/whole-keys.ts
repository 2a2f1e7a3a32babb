import { createHash, createHmac } from 'node:crypto'
import { publicKeysBelow, type Curve, type PublicKeyAt, type WorkspaceKey } from '@custody/chains'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { HDKey } from '@scure/bip32'

const { BASE, Fn } = ed25519.Point
const littleEndian = (bytes: Uint8Array): bigint =>
  bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n)

/**
 * A workspace's whole key of each curve, which no node ever has. Its signatures are equal to those
 * of two nodes.
 */
export class WholeKeys {
  readonly keys: Record<Curve, WorkspaceKey & { key_id: string }>
  readonly at: Record<Curve, PublicKeyAt>
  readonly #master: HDKey
  readonly #scalar: bigint
  /** Cache of the keys by path, because each is used many times. */
  readonly #secrets = new Map<string, Uint8Array>()
  readonly #scalars = new Map<string, bigint>()

  /** @param seed 32 bytes, or a number for a test's own fixed seed */
  constructor(seed: number | Uint8Array) {
    const bytes = typeof seed === 'number' ? Buffer.alloc(32, 7) : Buffer.from(seed)
    if (typeof seed === 'number') bytes.writeUInt32BE(seed)
    this.#master = HDKey.fromMasterSeed(bytes)
    this.#scalar = Fn.create(littleEndian(createHash('sha512').update(bytes).digest()))
    this.keys = {
      secp256k1: {
        key_id: 'k',
        curve: 'secp256k1',
        publicKey: this.#master.publicKey as Uint8Array,
        chainCode: this.#master.chainCode as Uint8Array,
      },
      ed25519: {
        key_id: 'e',
        curve: 'ed25519',
        publicKey: BASE.multiply(this.#scalar).toBytes(),
        chainCode: new Uint8Array(bytes),
      },
    }
    this.at = {
      secp256k1: publicKeysBelow(this.keys.secp256k1),
      ed25519: publicKeysBelow(this.keys.ed25519),
    }
  }

  /** Returns a signature in the format of the signing engines. */
  sign(
    curve: Curve,
    message: Uint8Array,
    path: readonly number[],
  ): { signature: Uint8Array; recoveryId: number | null } {
    if (curve === 'ed25519')
      return { signature: this.#signEdwards(message, path), recoveryId: null }
    const name = path.join('/')
    const secret =
      this.#secrets.get(name) ??
      (path.reduce((node, index) => node.deriveChild(index), this.#master).privateKey as Uint8Array)
    this.#secrets.set(name, secret)
    const signature = secp256k1.sign(message, secret, { prehash: false, format: 'recovered' })
    return { signature: signature.subarray(1), recoveryId: signature[0] as number }
  }

  /** Returns the private scalar of a path, with the same tweaks as its public key. */
  #scalarAt(path: readonly number[]): bigint {
    const name = path.join('/')
    const existing = this.#scalars.get(name)
    if (existing !== undefined) return existing
    let scalar = this.#scalar
    let code = this.keys.ed25519.chainCode
    for (const index of path) {
      const place = Buffer.alloc(4)
      place.writeUInt32BE(index)
      const digest = createHmac('sha512', code)
        .update(BASE.multiply(scalar).toBytes())
        .update(place)
        .digest()
      scalar = Fn.create(scalar + littleEndian(digest.subarray(0, 32)))
      code = digest.subarray(32)
    }
    this.#scalars.set(name, scalar)
    return scalar
  }

  /**
   * Signs by RFC 8032, with a nonce derived from the scalar and the message, because a derived
   * scalar has no seed from which to derive a nonce.
   */
  #signEdwards(message: Uint8Array, path: readonly number[]): Uint8Array {
    const scalar = this.#scalarAt(path)
    const nonce = Fn.create(
      littleEndian(createHash('sha512').update(scalar.toString(16)).update(message).digest()),
    )
    const point = BASE.multiply(nonce).toBytes()
    const hashed = createHash('sha512')
      .update(point)
      .update(BASE.multiply(scalar).toBytes())
      .update(message)
      .digest()
    const response = Buffer.from(
      Fn.create(nonce + littleEndian(hashed) * scalar)
        .toString(16)
        .padStart(64, '0'),
      'hex',
    ).reverse()
    return new Uint8Array(Buffer.concat([point, response]))
  }
}
