import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import type { xdr } from '@stellar/stellar-base'
import { isEd25519 } from '../ed25519.ts'
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
import { address, splitMuxed } from './address.ts'
import { tagOf } from './memo-xdr.ts'
import { addressOf } from './muxed.ts'
import { library } from './library.ts'

/** ENVELOPE_TYPE_TX, which is between the network's id and the transaction in the signed bytes. */
const ENVELOPE_TYPE_TX = hexToBytes('00000002')
const BYTES_MAX = 1024
const HINT_BYTES = 4

interface Parsed {
  transaction: xdr.Transaction
  payment: { address: string; amount: bigint; tag: string | null }
  validUntil: number
}

function parse(unsigned: UnsignedTransaction): Parsed {
  if (!/^(?:[0-9a-f]{2})+$/.test(unsigned.bytes) || unsigned.bytes.length > 2 * BYTES_MAX) {
    throw new ChainError('TRANSACTION', 'bytes must be lower-case hex without 0x')
  }
  let envelope: xdr.TransactionEnvelope
  let again: string
  try {
    envelope = library().xdr.TransactionEnvelope.fromXDR(unsigned.bytes, 'hex')
    again = envelope.toXDR('hex')
  } catch {
    throw new ChainError('TRANSACTION', 'is not a Stellar transaction')
  }
  if (again !== unsigned.bytes)
    throw new ChainError('ENCODING', 'does not re-encode to the same bytes')
  assertShape(envelope.switch().name === 'envelopeTypeTx', 'only plain transactions are allowed')
  const v1 = envelope.v1()
  if (v1.signatures().length > 0) throw new ChainError('TRANSACTION', 'already carries a signature')
  const transaction = v1.tx()
  assertShape(transaction.ext().switch() === 0, 'an extension is not allowed')
  assertShape(
    transaction.sourceAccount().switch().name === 'keyTypeEd25519',
    'the source must be a plain account',
  )
  assertShape(BigInt(transaction.seqNum().toString()) > 0n, 'has no sequence')
  const conditions = transaction.cond()
  assertShape(
    conditions.switch().name === 'precondTime',
    'time bounds are required, and no other condition is allowed',
  )
  const bounds = conditions.timeBounds()
  assertShape(bounds.minTime().toString() === '0', 'a transaction must be valid immediately')
  const validUntil = Number(bounds.maxTime().toString())
  assertShape(
    validUntil > 0 && validUntil <= 0xffff_ffff,
    'maxTime is missing: the transaction would never expire',
  )
  const [operation, more] = transaction.operations()
  assertShape(operation !== undefined && more === undefined, 'exactly one operation is allowed')
  assertShape(!operation.sourceAccount(), 'an operation of another account is not allowed')
  const body = operation.body()
  const tag = tagOf(transaction.memo())
  let payment: Parsed['payment']
  if (body.switch().name === 'payment') {
    const { asset, destination, amount } = {
      asset: body.paymentOp().asset(),
      destination: body.paymentOp().destination(),
      amount: body.paymentOp().amount(),
    }
    assertShape(asset.switch().name === 'assetTypeNative', 'only the native coin can be paid')
    payment = { address: addressOf(destination), amount: BigInt(amount.toString()), tag }
  } else {
    assertShape(
      body.switch().name === 'createAccount',
      'only a payment or the creation of an account is allowed',
    )
    const create = body.createAccountOp()
    payment = {
      address: library().StrKey.encodeEd25519PublicKey(create.destination().ed25519()),
      amount: BigInt(create.startingBalance().toString()),
      tag,
    }
  }
  assertShape(payment.amount > 0n, 'makes no payment')
  return { transaction, payment, validUntil }
}

/** Returns the hash that is signed. It commits to the network's passphrase. */
function hashOf(network: Network, transaction: xdr.Transaction): Uint8Array {
  if (network.passphrase === undefined)
    throw new ChainError('NETWORK', `${network.code} has no passphrase`)
  return sha256(
    concatBytes(
      sha256(utf8ToBytes(network.passphrase)),
      ENVELOPE_TYPE_TX,
      new Uint8Array(transaction.toXDR()),
    ),
  )
}

/**
 * See Family.decode. Allows one operation: a native payment or the creation of an account. Time
 * bounds are required.
 */
export function decode(
  network: Network,
  unsigned: UnsignedTransaction,
  assets: readonly Asset[],
  publicKeyAt: PublicKeyAt,
): DecodedTransaction {
  const { transaction, payment, validUntil } = parse(unsigned)
  const from = address(network, publicKeyAt(onlyPath(unsigned)))
  if (addressOf(transaction.sourceAccount()) !== from)
    throw new ChainError('PATH', 'the account is not the one at the path')
  if ((splitMuxed(payment.address)?.account ?? payment.address) === from)
    throw new ChainError('SHAPE', 'an account must not pay itself')
  const asset = assets.find((candidate) => candidate.type === 'native')
  if (!asset) throw new ChainError('NETWORK', `${network.code} has no native asset`)
  const sequence = transaction.seqNum().toString()
  return {
    network: network.code,
    asset: asset.asset_name,
    payments: [payment],
    change: null,
    from: [from],
    fee_max: BigInt(transaction.fee()),
    fee_rate: String(transaction.fee()),
    consumes: [`${from}:${sequence}`],
    valid_until: validUntil,
    nonce: BigInt(sequence),
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: null,
  }
}

/** Returns the 32 bytes of the hash, which Ed25519 signs as its message. */
export function signing(
  network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): SigningItem[] {
  const { transaction } = parse(unsigned)
  const path = onlyPath(unsigned)
  return [{ path, publicKey: publicKeyAt(path), message: hashOf(network, transaction) }]
}

/** Adds the decorated signature, whose hint is the last four bytes of the key. */
export function assemble(
  network: Network,
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const { transaction } = parse(unsigned)
  const [item] = signing(network, unsigned, publicKeyAt) as [SigningItem]
  const [part, more] = signatures
  if (!part || more || part.signature.length !== 64)
    throw new ChainError('SIGNATURE', 'exactly one 64-byte signature is required')
  if (part.recoveryId !== null)
    throw new ChainError('SIGNATURE', 'an Ed25519 signature has no recovery id')
  if (!isEd25519(part.signature, item.message, item.publicKey))
    throw new ChainError('SIGNATURE', 'does not verify')
  const decorated = new (library().xdr.DecoratedSignature)({
    hint: Buffer.from(item.publicKey.subarray(-HINT_BYTES)),
    signature: Buffer.from(part.signature),
  })
  const envelope = library().xdr.TransactionEnvelope.envelopeTypeTx(
    new (library().xdr.TransactionV1Envelope)({ tx: transaction, signatures: [decorated] }),
  )
  return { network: network.code, raw: envelope.toXDR('hex'), hash: bytesToHex(item.message) }
}

/** Returns whether both have the same account and sequence: only one of them can be included. */
export function exclusive(earlier: DecodedTransaction, next: DecodedTransaction): boolean {
  return earlier.consumes[0] === next.consumes[0]
}

/** See {@link Family.renumber}. */
export function renumber(unsigned: UnsignedTransaction, nonce: bigint): UnsignedTransaction {
  const { xdr: stellar } = library()
  const envelope = stellar.TransactionEnvelope.fromXDR(unsigned.bytes, 'hex')
  envelope
    .v1()
    .tx()
    .seqNum(stellar.Int64.fromString(nonce.toString()) as unknown as xdr.SequenceNumber)
  return { ...unsigned, bytes: envelope.toXDR('hex') }
}
