import { ChainError, type Network, type Validation } from '../types.ts'

/** Address of a public key: 33 bytes compressed (secp256k1) or 32 bytes (Ed25519). */
export function address(network: Network, _publicKey: Uint8Array): string {
  throw new ChainError('TEMPLATE', `${network.code}: addresses are to be written`)
}

/** Answers the canonical spelling, or the reason in words that a user understands. */
export function validate(_network: Network, _address: string, _addressTag?: string | null): Validation {
  return { valid: false, reason: 'addresses of this network are to be written' }
}
