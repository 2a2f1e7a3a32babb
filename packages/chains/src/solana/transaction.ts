import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'
import { base58 } from '@scure/base'
import { isEd25519 } from '../ed25519.ts'
import { readOnce } from '../read-once.ts'
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
import { feeOf, TOKEN_ACCOUNT_RENT } from './build.ts'
import { parse, type Payment } from './message.ts'

const SIGNATURE_BYTES = 64

const parsed = readOnce(
  (
    _network: Network,
    { bytes }: UnsignedTransaction,
  ): { payment: Payment; message: Uint8Array } => {
    if (!/^(?:[0-9a-f]{2})+$/.test(bytes))
      throw new ChainError('TRANSACTION', 'bytes must be lower-case hex without 0x')
    const message = hexToBytes(bytes)
    return { payment: parse(message), message }
  },
)

function read(
  network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): { payment: Payment; signers: string[]; message: Uint8Array } {
  if (unsigned.change) throw new ChainError('SHAPE', 'a Solana transaction has no change')
  const { payment, message } = parsed(network, unsigned)
  const signers = payment.sweep ? [payment.to, payment.from] : [payment.from]
  if (unsigned.inputs.length !== signers.length) {
    throw new ChainError(
      'SHAPE',
      `the message has ${signers.length} signers, but ${unsigned.inputs.length} paths`,
    )
  }
  for (const [index, { path }] of unsigned.inputs.entries()) {
    if (signers[index] !== address(network, publicKeyAt(path)))
      throw new ChainError('PATH', 'the account is not the one at the path')
  }
  return { payment, signers, message }
}

/**
 * See Family.decode. Allows one transfer whose fee the sending account pays, or a sweep of tokens
 * whose fee the receiver pays. The transaction contains no expiry: it expires with its recent
 * blockhash after 150 blocks, and anything that would extend this (a durable nonce) is rejected.
 * Transactions do not exclude each other.
 */
export function decode(
  network: Network,
  unsigned: UnsignedTransaction,
  assets: readonly Asset[],
  publicKeyAt: PublicKeyAt,
): DecodedTransaction {
  const { payment, signers } = read(network, unsigned, publicKeyAt)
  const { token } = payment
  const asset = assets.find((candidate) =>
    token
      ? candidate.type === 'token' && candidate.contract_address === token.mint
      : candidate.type === 'native',
  )
  if (!asset) {
    throw new ChainError(
      token ? 'CONTRACT' : 'NETWORK',
      token ? `the mint ${token.mint} is not registered` : `${network.code} has no native asset`,
    )
  }
  if (token && token.decimals !== asset.decimals) {
    throw new ChainError(
      'CONTRACT',
      `${asset.asset_name} has ${asset.decimals} decimals, not ${token.decimals}`,
    )
  }
  const fee = feeOf(payment.units ?? 0, payment.unitPrice ?? 0n, signers.length)
  return {
    network: network.code,
    asset: asset.asset_name,
    payments: [{ address: payment.to, amount: payment.amount, tag: null }],
    change: null,
    from: signers,
    // The token account may be closed before the transaction is executed, which then pays for a new
    // one.
    fee_max: fee + (token ? TOKEN_ACCOUNT_RENT : 0n),
    fee_rate: fee.toString(),
    consumes: [],
    nonce: null,
    gas_limit: null,
    max_fee_per_gas: null,
    vsize: null,
  }
}

/** Returns the signing item: Ed25519 signs the whole message. */
export function signing(
  network: Network,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): SigningItem[] {
  const { message } = read(network, unsigned, publicKeyAt)
  return unsigned.inputs.map(({ path }) => ({ path, publicKey: publicKeyAt(path), message }))
}

/** Adds the signatures. The transaction's id is its first signature. */
export function assemble(
  network: Network,
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const items = signing(network, unsigned, publicKeyAt)
  if (signatures.length !== items.length)
    throw new ChainError('SIGNATURE', `exactly ${items.length} signatures are required`)
  for (const [index, { publicKey, message }] of items.entries()) {
    const { signature, recoveryId } = signatures[index] as SignatureBytes
    if (signature.length !== SIGNATURE_BYTES)
      throw new ChainError('SIGNATURE', 'a signature has 64 bytes')
    if (recoveryId !== null)
      throw new ChainError('SIGNATURE', 'an Ed25519 signature has no recovery id')
    if (!isEd25519(signature, message, publicKey))
      throw new ChainError('SIGNATURE', 'does not verify')
  }
  const [first] = signatures as [SignatureBytes]
  return {
    network: network.code,
    raw: bytesToHex(
      concatBytes(
        Uint8Array.of(items.length),
        ...signatures.map(({ signature }) => signature),
        items[0]!.message,
      ),
    ),
    hash: base58.encode(first.signature),
  }
}

/**
 * Always false: two transactions of one account may both be executed. The same message cannot be
 * executed twice, because the chain remembers it while its blockhash is valid.
 */
export function exclusive(): boolean {
  return false
}
