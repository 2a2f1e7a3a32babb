import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha512 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'
import type { encode as Encode } from 'ripple-binary-codec'
import { isValidClassicAddress } from 'ripple-address-codec'
import { isSecp256k1 } from '../secp256k1.ts'
import { onlyPath } from '../assertions.ts'
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
import { address } from './address.ts'
import { library } from './library.ts'

/**
 * Prefixes: "STX\0" precedes the signed bytes, "TXN\0" the bytes whose hash is the transaction's
 * id.
 */
const SIGNING_PREFIX = hexToBytes('53545800')
const ID_PREFIX = hexToBytes('54584e00')
const FULLY_CANONICAL = 0x8000_0000
/** 100 billion XRP in drops, the total supply. */
const DROPS_MAX = 10n ** 17n
const BYTES_MAX = 1024

interface Payment {
  TransactionType: 'Payment'
  Flags?: number
  Account: string
  Destination: string
  DestinationTag?: number
  Amount: string
  Fee: string
  Sequence: number
  LastLedgerSequence: number
  SigningPubKey: string
}
/**
 * Fields that a payment may have. All others (paths, SendMax, DeliverMin, memos, tickets,
 * SourceTag, signers, …) are rejected.
 */
const FIELDS = new Set([
  'TransactionType',
  'Flags',
  'Account',
  'Destination',
  'DestinationTag',
  'Amount',
  'Fee',
  'Sequence',
  'LastLedgerSequence',
  'SigningPubKey',
])

/** Decodes a transaction. The library writes hex in capitals. */
const decodeBinary = (hex: string): Record<string, unknown> =>
  library().decode(hex.toUpperCase()) as Record<string, unknown>
const encode = (json: Record<string, unknown>): string =>
  library()
    .encode(json as Parameters<typeof Encode>[0])
    .toLowerCase()
const sha512Half = (prefix: Uint8Array, bytes: Uint8Array): Uint8Array =>
  sha512(concatBytes(prefix, bytes)).subarray(0, 32)

/**
 * Decodes the bytes of a transaction, which must be in their only encoding.
 * @throws ChainError
 */
function decodeExact(unsigned: UnsignedTransaction): Record<string, unknown> {
  if (!/^(?:[0-9a-f]{2})+$/.test(unsigned.bytes) || unsigned.bytes.length > 2 * BYTES_MAX) {
    throw new ChainError('TRANSACTION', 'bytes must be lower-case hex without 0x')
  }
  let json: Record<string, unknown>
  let again: string
  try {
    json = decodeBinary(unsigned.bytes)
    again = encode(json)
  } catch {
    throw new ChainError('TRANSACTION', 'is not an XRP Ledger transaction')
  }
  if (again !== unsigned.bytes)
    throw new ChainError('ENCODING', 'does not re-encode to the same bytes')
  return json
}

/**
 * Parses a transaction of the allowed shape.
 * @throws ChainError
 */
function parse(unsigned: UnsignedTransaction): Payment {
  const json = decodeExact(unsigned)
  if (json['TransactionType'] !== 'Payment')
    throw new ChainError('SHAPE', 'only payments are allowed')
  for (const name of Object.keys(json))
    if (!FIELDS.has(name)) throw new ChainError('SHAPE', `the field ${name} is not allowed`)
  const payment = json as unknown as Payment
  if (
    payment.Flags !== undefined &&
    payment.Flags !== 0 &&
    payment.Flags >>> 0 !== FULLY_CANONICAL
  ) {
    throw new ChainError('SHAPE', 'flags are not allowed: a partial payment would deliver less')
  }
  if (
    typeof payment.Amount !== 'string' ||
    !/^[1-9]\d{0,17}$/.test(payment.Amount) ||
    BigInt(payment.Amount) > DROPS_MAX
  ) {
    throw new ChainError('SHAPE', 'only XRP can be paid')
  }
  if (typeof payment.Fee !== 'string' || !/^[1-9]\d{0,17}$/.test(payment.Fee))
    throw new ChainError('SHAPE', 'has no fee')
  // Sequence 0 means a ticket, and tickets do not exclude each other by sequence.
  if (!Number.isInteger(payment.Sequence) || payment.Sequence < 1)
    throw new ChainError('SHAPE', 'has no sequence')
  if (!Number.isInteger(payment.LastLedgerSequence) || payment.LastLedgerSequence < 1) {
    throw new ChainError(
      'SHAPE',
      'LastLedgerSequence is missing: the transaction would never expire',
    )
  }
  if (typeof payment.Destination !== 'string' || !isValidClassicAddress(payment.Destination)) {
    throw new ChainError('SHAPE', 'has no destination')
  }
  if (typeof payment.SigningPubKey !== 'string') throw new ChainError('SHAPE', 'has no key')
  return payment
}

/** See Family.decode. Allows one shape: a payment of XRP with a sequence and an expiry. */
export function decode(
  network: Network,
  unsigned: UnsignedTransaction,
  assets: readonly Asset[],
  publicKeyAt: PublicKeyAt,
): DecodedTransaction {
  const payment = parse(unsigned)
  const publicKey = publicKeyAt(onlyPath(unsigned))
  const from = address(network, publicKey)
  if (payment.Account !== from)
    throw new ChainError('PATH', 'the account is not the one at the path')
  if (payment.SigningPubKey.toLowerCase() !== bytesToHex(publicKey)) {
    throw new ChainError('PATH', 'SigningPubKey is not the key at the path')
  }
  if (payment.Destination === from) throw new ChainError('SHAPE', 'an account must not pay itself')
  const asset = assets.find((candidate) => candidate.type === 'native')
  if (!asset) throw new ChainError('NETWORK', `${network.code} has no native asset`)
  return {
    network: network.code,
    asset: asset.asset_name,
    payments: [
      {
        address: payment.Destination,
        amount: BigInt(payment.Amount),
        tag: payment.DestinationTag === undefined ? null : String(payment.DestinationTag),
      },
    ],
    change: null,
    from: [from],
    fee_max: BigInt(payment.Fee),
    fee_rate: payment.Fee,
    consumes: [`${from}:${payment.Sequence}`],
    valid_until: payment.LastLedgerSequence,
    nonce: BigInt(payment.Sequence),
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: null,
  }
}

/** Returns SHA-512Half of the prefixed transaction. */
export function signing(
  _network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): SigningItem[] {
  parse(unsigned)
  const path = onlyPath(unsigned)
  return [
    {
      path,
      publicKey: publicKeyAt(path),
      message: sha512Half(SIGNING_PREFIX, hexToBytes(unsigned.bytes)),
    },
  ]
}

/**
 * Encodes the signature as DER, low-S. The ledger rejects high-S, which would give one payment two
 * ids.
 */
export function assemble(
  network: Network,
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const payment = parse(unsigned)
  const [item] = signing(network, unsigned, publicKeyAt) as [SigningItem]
  const [part, more] = signatures
  if (!part || more || part.signature.length !== 64)
    throw new ChainError('SIGNATURE', 'exactly one 64-byte signature is required')
  if (payment.SigningPubKey.toLowerCase() !== bytesToHex(item.publicKey)) {
    throw new ChainError('PATH', 'SigningPubKey is not the key at the path')
  }
  if (!isSecp256k1(part.signature, item.message, item.publicKey)) {
    throw new ChainError('SIGNATURE', 'does not verify')
  }
  const der = bytesToHex(secp256k1.Signature.fromBytes(part.signature).toBytes('der')).toUpperCase()
  const raw = encode({ ...payment, TxnSignature: der })
  return {
    network: network.code,
    raw,
    hash: bytesToHex(sha512Half(ID_PREFIX, hexToBytes(raw))).toUpperCase(),
  }
}

/** Returns whether both have the same account and sequence: only one of them can be included. */
export function exclusive(earlier: DecodedTransaction, next: DecodedTransaction): boolean {
  return earlier.consumes[0] === next.consumes[0]
}

/**
 * Returns the id of a signed transaction and its bytes without the signature; null if it cannot be
 * decoded.
 */
export function identify(blob: string): { hash: string; message: string } | null {
  try {
    const { TxnSignature: _, ...fields } = decodeBinary(blob)
    const message = encode(fields)
    return { hash: bytesToHex(sha512Half(ID_PREFIX, hexToBytes(blob))).toUpperCase(), message }
  } catch {
    return null
  }
}

/** See {@link Family.renumber}. */
export function renumber(unsigned: UnsignedTransaction, nonce: bigint): UnsignedTransaction {
  return {
    ...unsigned,
    bytes: encode({ ...decodeBinary(unsigned.bytes), Sequence: Number(nonce) }),
  }
}
