import {
  ChainError, type Asset, type DecodedTransaction, type Network, type PublicKeyAt, type SignatureBytes, type SignedTransaction,
  type SigningItem, type UnsignedTransaction,
} from '../types.ts'

/**
 * Reads bytes that a hostile platform may have made. Refuse every shape that is not allow-listed; name exactly one
 * payment; encode again and compare with the bytes; bound the fee in `fee_max`; say in `consumes` what it uses up.
 */
export function decode(
  network: Network, _unsigned: UnsignedTransaction, _assets: readonly Asset[], _publicKeyAt: PublicKeyAt
): DecodedTransaction {
  throw new ChainError('TEMPLATE', `${network.code}: transactions are to be written`)
}

/** One item for each signature: a 32-byte digest (secp256k1) or the whole message (Ed25519). */
export function signing(network: Network, _unsigned: UnsignedTransaction, _publicKeyAt: PublicKeyAt): SigningItem[] {
  throw new ChainError('TEMPLATE', `${network.code}: digests are to be written`)
}

/** Verify each signature before it is put in; demand low-S where the curve has it. */
export function assemble(
  network: Network, _unsigned: UnsignedTransaction, _signatures: SignatureBytes[], _publicKeyAt: PublicKeyAt
): SignedTransaction {
  throw new ChainError('TEMPLATE', `${network.code}: signed transactions are to be written`)
}

/** True only when the chain can never include both. Where nothing excludes, always false. */
export function exclusive(earlier: DecodedTransaction, next: DecodedTransaction): boolean {
  return next.consumes.some((consumed) => earlier.consumes.includes(consumed))
}
