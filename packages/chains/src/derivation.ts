import { hmac } from '@noble/hashes/hmac.js'
import { sha512 } from '@noble/hashes/sha2.js'
import { ed25519 } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { ChainError, type Curve, type Network, type Path } from './types.ts'

/** Public part of a workspace key. */
export interface WorkspaceKey {
  curve: Curve
  publicKey: Uint8Array
  chainCode: Uint8Array
}

/**
 * Sub-account of the workspace's gas tanks. Every path of a workspace key begins with a
 * sub-account.
 */
export const TANK_SUB_ACCOUNT = 0
/** Index of a wallet's first address, which is the omnibus address of account-based chains. */
export const OMNIBUS_INDEX = 0
/** Index of the address that receives all change of a UTXO wallet. */
export const CHANGE_INDEX = 0x7fffffff

/** Returns the path `[sub-account, chain, index]` after checking that all of it is non-hardened. */
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

/** A public key with the chain code for deriving keys below it. */
export interface ExtendedKey {
  publicKey: Uint8Array
  chainCode: Uint8Array
}

/**
 * Derives the public key and chain code at a path below a workspace key. secp256k1: BIP32 public
 * derivation. Ed25519: the additive tweak HMAC-SHA512(chain code, public key ‖ index).
 *
 * @param path non-hardened indices
 * @returns public key of 33 bytes (secp256k1, compressed) or 32 bytes (Ed25519), and chain code of
 *   32 bytes
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
 * Implements BIP32's CKDpub step by step. All inputs are public, so the multiplication need not run
 * in constant time.
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
    // For an invalid tweak BIP32 prescribes the next index. It occurs with a probability of 1 in
    // 2¹²⁷, and implementations disagree on the details, so it is an error here.
    point = BASE.multiplyUnsafe(Fn.fromBytes(digest.subarray(0, 32))).add(point)
    key = point.toBytes(true)
    code = digest.subarray(32)
  }
  return { publicKey: key, chainCode: code }
}

/** Returns only the public key of {@link deriveExtendedKey}. */
export function derivePublicKey(
  curve: Curve,
  publicKey: Uint8Array,
  chainCode: Uint8Array,
  path: Path,
): Uint8Array {
  return deriveExtendedKey(curve, publicKey, chainCode, path).publicKey
}
