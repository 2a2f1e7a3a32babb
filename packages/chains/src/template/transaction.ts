import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { isSecp256k1 } from '../secp256k1.ts'
import { onlyPath, assertShape } from '../assertions.ts'
import {
  ChainError,
  type Asset,
  type DecodedTransaction,
  type Network,
  type PublicKeyAt,
  type SignatureBytes,
  type SignedTransaction,
  type SigningItem,
  type UnsignedTransaction,
} from '../types.ts'
import { address, HASH_BYTES, spell } from './address.ts'

/** Length of a compressed public key, and of a whole unsigned transaction, in bytes. */
const KEY_BYTES = 33
const BYTES = 4 + 8 + 4 + 8 + 8 + KEY_BYTES + HASH_BYTES

/** Fields of a transaction in the order of its bytes. Integers are big-endian. */
export interface Fields {
  /**
   * 4 bytes. It is signed with the rest, so a transaction of one network is invalid on any other.
   */
  networkId: number
  /** 8 bytes. Sequence of the account: the chain accepts each once, in ascending order. */
  sequence: bigint
  /** 4 bytes, Unix seconds. A later block does not include the transaction. */
  validUntil: number
  /** 8 bytes each for fee and amount, in the smallest unit. */
  fee: bigint
  amount: bigint
  /** 33 bytes. Public key of the paying account. */
  publicKey: Uint8Array
  /** 20 bytes. Hash in the receiver's address. */
  to: Uint8Array
}

/**
 * Encodes the fields as bytes, in hex.
 * @throws RangeError if a number does not fit
 */
export function encode(fields: Fields): string {
  const numbers = Buffer.alloc(BYTES - KEY_BYTES - HASH_BYTES)
  numbers.writeUInt32BE(fields.networkId, 0)
  numbers.writeBigUInt64BE(fields.sequence, 4)
  numbers.writeUInt32BE(fields.validUntil, 12)
  numbers.writeBigUInt64BE(fields.fee, 16)
  numbers.writeBigUInt64BE(fields.amount, 24)
  return bytesToHex(Buffer.concat([numbers, fields.publicKey, fields.to]))
}

/**
 * Reads the fields of an unsigned transaction. Every byte belongs to a field, and only the exact
 * output of {@link encode} is accepted.
 * @throws ChainError `TRANSACTION`, `ENCODING`
 */
function parse({ bytes: hex }: UnsignedTransaction): Fields {
  if (!/^[0-9a-f]+$/.test(hex) || hex.length !== 2 * BYTES) {
    throw new ChainError('TRANSACTION', `must be ${BYTES} bytes of lower-case hex`)
  }
  const bytes = Buffer.from(hex, 'hex')
  const fields = {
    networkId: bytes.readUInt32BE(0),
    sequence: bytes.readBigUInt64BE(4),
    validUntil: bytes.readUInt32BE(12),
    fee: bytes.readBigUInt64BE(16),
    amount: bytes.readBigUInt64BE(24),
    publicKey: bytes.subarray(32, 32 + KEY_BYTES),
    to: bytes.subarray(32 + KEY_BYTES),
  }
  // With fields at fixed positions this check cannot fail. In a format where the sender chooses
  // lengths or order, it rejects a second encoding of the same transaction.
  if (encode(fields) !== hex)
    throw new ChainError('ENCODING', 'does not re-encode to the same bytes')
  return fields
}

/**
 * Decodes bytes that may come from a compromised platform. The result is all that the signer nodes
 * base their decision on, so everything that is not allowed is rejected, exactly one payment is
 * returned, the fee is bounded, and `consumes` lists what the transaction uses up.
 * @throws ChainError
 */
export function decode(
  network: Network,
  unsigned: UnsignedTransaction,
  assets: readonly Asset[],
  publicKeyAt: PublicKeyAt,
): DecodedTransaction {
  const { networkId, sequence, validUntil, fee, amount, publicKey, to } = parse(unsigned)
  if (networkId !== network.network_id)
    throw new ChainError('NETWORK', `is for the network ${networkId}, not ${network.network_id}`)
  const own = publicKeyAt(onlyPath(unsigned))
  if (!Buffer.from(own).equals(publicKey))
    throw new ChainError('PATH', 'the public key is not the one at the path')
  const [from, receiver] = [address(network, own), spell(to)]
  assertShape(receiver !== from, 'an account must not pay itself')
  assertShape(amount > 0n && fee > 0n, 'has no amount or no fee')
  const asset = assets.find(({ type }) => type === 'native')
  if (!asset) throw new ChainError('NETWORK', `${network.code} has no native asset`)
  return {
    network: network.code,
    asset: asset.asset_name,
    payments: [{ address: receiver, amount, tag: null }],
    change: null,
    from: [from],
    fee_max: fee,
    fee_rate: fee.toString(),
    consumes: [`${from}:${sequence}`],
    valid_until: validUntil,
    nonce: sequence,
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: null,
  }
}

/**
 * Returns one item for each signature: a 32-byte digest (secp256k1), or the whole message if the
 * curve is Ed25519.
 */
export function signing(
  _network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): SigningItem[] {
  const path = onlyPath(unsigned)
  parse(unsigned)
  return [{ path, publicKey: publicKeyAt(path), message: sha256(hexToBytes(unsigned.bytes)) }]
}

/**
 * Appends the signature to the bytes after verifying it. It must be low-S, because the high-S form
 * would be a second valid encoding. The id is a hash of the signed bytes alone; in a family whose
 * id covers the signature, the client needs `findSigned`.
 * @throws ChainError `SIGNATURE`
 */
export function assemble(
  network: Network,
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const [item] = signing(network, unsigned, publicKeyAt) as [SigningItem]
  const [part, more] = signatures
  if (!part || more || part.signature.length !== 64)
    throw new ChainError('SIGNATURE', 'exactly one 64-byte signature is required')
  if (!isSecp256k1(part.signature, item.message, item.publicKey)) {
    throw new ChainError('SIGNATURE', 'does not verify')
  }
  return {
    network: network.code,
    raw: unsigned.bytes + bytesToHex(part.signature),
    hash: bytesToHex(item.message),
  }
}

/**
 * Returns true only if the chain can never include both: they have the same account and sequence.
 * In a family whose transactions do not exclude each other, this is always false.
 */
export function exclusive(earlier: DecodedTransaction, next: DecodedTransaction): boolean {
  return earlier.consumes[0] === next.consumes[0]
}

/**
 * See {@link Family.renumber}: assigns the sequence of a transaction that was abandoned before it
 * was signed.
 */
export function renumber(unsigned: UnsignedTransaction, nonce: bigint): UnsignedTransaction {
  return { ...unsigned, bytes: encode({ ...parse(unsigned), sequence: nonce }) }
}
