import { hmac } from '@noble/hashes/hmac.js'
import { sha512 } from '@noble/hashes/sha2.js'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { ChainError, type Curve, type Network, type Path } from './types.ts'

/** A workspace key's public half. */
export interface WorkspaceKey {
  curve: Curve
  publicKey: Uint8Array
  chainCode: Uint8Array
}

/** Paths of a workspace key start with a sub-account; 0 belongs to the workspace's gas tanks. */
export const TANK_SUB_ACCOUNT = 0
/** A wallet's first address: the omnibus address of account-based chains. */
export const OMNIBUS_INDEX = 0
/** Change of UTXO wallets returns to this one index. */
export const CHANGE_INDEX = 0x7fffffff

/** `[sub-account, chain, index]`, checked to be non-hardened. */
export function pathOf(network: Network, subAccount: number, index: number): number[] {
  const path = [subAccount, network.chain_index, index]
  assertPath(path)
  return path
}

function assertPath(path: Path): void {
  for (const index of path) {
    if (!Number.isInteger(index) || index < 0 || index > 0x7fffffff) {
      throw new ChainError('PATH', `path element ${index} is not a non-hardened index`)
    }
  }
}

/** A public key with the chain code that goes on below it. */
export interface ExtendedKey {
  publicKey: Uint8Array
  chainCode: Uint8Array
}

/**
 * Public key below a workspace key, and its own chain code. secp256k1: BIP32 public derivation.
 * Ed25519: the additive tweak HMAC-SHA512(chain code, public key ‖ index).
 *
 * @param path non-hardened indices
 * @returns 33 bytes (secp256k1, compressed) or 32 bytes (Ed25519), and 32 bytes
 * @throws ChainError `PATH`
 */
export function deriveExtendedKey(
  curve: Curve,
  publicKey: Uint8Array,
  chainCode: Uint8Array,
  path: Path,
): ExtendedKey {
  assertPath(path)
  if (curve === 'secp256k1') return belowSecp256k1(publicKey, chainCode, path)
  let key = publicKey
  let code = chainCode
  for (const index of path) {
    const data = new Uint8Array(36)
    data.set(key)
    new DataView(data.buffer).setUint32(32, index, false)
    const digest = hmac(sha512, code, data)
    let tweak = 0n
    // Little-endian, as RFC 8032 reads scalars and as the signing engine does.
    for (const byte of digest.subarray(0, 32).toReversed()) tweak = (tweak << 8n) | BigInt(byte)
    const order = ed25519.Point.Fn.ORDER
    tweak %= order
    const base = tweak === 0n ? ed25519.Point.ZERO : ed25519.Point.BASE.multiply(tweak)
    key = ed25519.Point.fromBytes(key).add(base).toBytes()
    code = digest.subarray(32)
  }
  return { publicKey: key, chainCode: code }
}

/**
 * BIP32's CKDpub, step by step. All of it is public, so the multiplication need not take the same
 * time for every tweak.
 */
function belowSecp256k1(publicKey: Uint8Array, chainCode: Uint8Array, path: Path): ExtendedKey {
  const { BASE, Fn } = secp256k1.Point
  let point = secp256k1.Point.fromBytes(publicKey)
  let key = publicKey
  let code = chainCode
  for (const index of path) {
    const data = new Uint8Array(37)
    data.set(key)
    new DataView(data.buffer).setUint32(33, index, false)
    const digest = hmac(sha512, code, data)
    // Of a tweak that is none BIP32 says to go on; it comes once in 2¹²⁷, and no two
    // implementations agree how.
    point = BASE.multiplyUnsafe(Fn.fromBytes(digest.subarray(0, 32))).add(point)
    key = point.toBytes(true)
    code = digest.subarray(32)
  }
  return { publicKey: key, chainCode: code }
}

/** The public key of {@link deriveExtendedKey} alone. */
export function derivePublicKey(
  curve: Curve,
  publicKey: Uint8Array,
  chainCode: Uint8Array,
  path: Path,
): Uint8Array {
  return deriveExtendedKey(curve, publicKey, chainCode, path).publicKey
}
