import {
  deriveExtendedKey,
  derivePublicKey,
  type ExtendedKey,
  type WorkspaceKey,
} from './derivation.ts'
import * as list from './list.ts'
import { validateBy } from './policy/address-registry.ts'
import type { Registry } from './registry.ts'
import type { RefusalKind, Traits } from './traits.ts'
import type { Family } from './family.ts'
import {
  ChainError,
  type DecodedTransaction,
  type FamilyName,
  type Network,
  type Path,
  type PublicKeyAt,
  type SignatureBytes,
  type SignedTransaction,
  type SigningItem,
  type UnsignedTransaction,
  type Validation,
} from './types.ts'

// The registry is data, so it may name a family that does not exist here.
const families: Partial<Record<FamilyName, Family>> = list

/**
 * Returns the family's pure functions.
 * @throws ChainError `FAMILY` if the family is not implemented
 */
export function familyOf(network: Network): Family {
  const family = families[network.family]
  if (!family)
    throw new ChainError('FAMILY', `${network.code}: family ${network.family} is not available`)
  return family
}

/**
 * Returns the traits of the network's family.
 * @throws ChainError `FAMILY` if the family is not implemented
 */
export function traitsOf(network: Network): Traits {
  return familyOf(network).traits
}

/** Returns the kind of a node's refusal of a broadcast; null if its message is not known. */
export const refusalKind = (network: Network, reason: string): RefusalKind | null =>
  traitsOf(network).refusals.find(([, pattern]) => pattern.test(reason))?.[0] ?? null

function networkOf(registry: Registry, unsigned: UnsignedTransaction): Network {
  const network = registry.network(unsigned.network)
  if (!network)
    throw new ChainError('NETWORK', `network ${String(unsigned.network)} is not available`)
  return network
}

/** See {@link Family.decode}. */
export function decode(
  registry: Registry,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): DecodedTransaction {
  const network = networkOf(registry, unsigned)
  return familyOf(network).decode(network, unsigned, registry.assetsOf(network.code), publicKeyAt)
}

/** See {@link Family.signing}. */
export function signing(
  registry: Registry,
  unsigned: UnsignedTransaction,
  publicKeyAt: PublicKeyAt,
): SigningItem[] {
  const network = networkOf(registry, unsigned)
  return familyOf(network).signing(network, unsigned, publicKeyAt)
}

/** See {@link Family.assemble}. */
export function assemble(
  registry: Registry,
  unsigned: UnsignedTransaction,
  signatures: SignatureBytes[],
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const network = networkOf(registry, unsigned)
  return familyOf(network).assemble(network, unsigned, signatures, publicKeyAt)
}

/**
 * Verifies that a transaction is signed with the keys of its inputs.
 * @param raw the signed transaction as it is broadcast, hex without 0x
 * @throws ChainError `SIGNATURE` if it is another transaction, or a signature does not verify
 */
export function verifySigned(
  registry: Registry,
  unsigned: UnsignedTransaction,
  raw: string,
  publicKeyAt: PublicKeyAt,
): SignedTransaction {
  const { signaturesIn } = familyOf(networkOf(registry, unsigned))
  if (!signaturesIn)
    throw new ChainError('SIGNATURE', `signatures of ${unsigned.network} cannot be read`)
  const signed = assemble(registry, unsigned, signaturesIn(raw), publicKeyAt)
  if (signed.raw !== raw)
    throw new ChainError('SIGNATURE', 'the signed transaction is not the unsigned one')
  return signed
}

/** See {@link Family.exclusive}. Transactions of different networks never exclude each other. */
export function exclusive(
  registry: Registry,
  earlier: DecodedTransaction,
  next: DecodedTransaction,
): boolean {
  if (earlier.network !== next.network) return false
  const network = registry.network(earlier.network)
  return network !== undefined && familyOf(network).exclusive(earlier, next)
}

/**
 * Returns the same unsigned transaction with another nonce of its account.
 * @throws ChainError `SHAPE` if transactions of the family have no nonce, or this one cannot have
 *   the given nonce
 */
export function withNonce(
  network: Network,
  unsigned: UnsignedTransaction,
  nonce: bigint,
): UnsignedTransaction {
  const { renumber } = familyOf(network)
  if (!renumber) throw new ChainError('SHAPE', `transactions of ${network.name} have no nonce`)
  try {
    return renumber(unsigned, nonce)
  } catch (error) {
    if (error instanceof ChainError) throw error
    // The libraries that read and write the bytes throw their own errors.
    throw new ChainError('SHAPE', `${network.code}: the transaction cannot have the nonce ${nonce}`)
  }
}

/** Returns the address of a workspace key at a path, in the network's own spelling. */
export function addressAt(
  network: Network,
  key: { publicKey: Uint8Array; chainCode: Uint8Array },
  path: Path,
): string {
  return familyOf(network).address(
    network,
    derivePublicKey(network.curve, key.publicKey, key.chainCode, path),
  )
}

/**
 * Returns a function that derives public keys below one workspace key. It caches every intermediate
 * key, because each derivation takes about half a millisecond.
 */
export function publicKeysBelow(key: WorkspaceKey): PublicKeyAt {
  const cache = new Map<string, ExtendedKey>([['', key]])
  const at = (path: Path): ExtendedKey => {
    const name = path.join('/')
    let cached = cache.get(name)
    if (!cached) {
      const above = at(path.slice(0, -1))
      cached = deriveExtendedKey(key.curve, above.publicKey, above.chainCode, path.slice(-1))
      cache.set(name, cached)
    }
    return cached
  }
  return (path) => at(path).publicKey
}

/**
 * Validates an address of an asset's network. Rejects contracts that the registry lists there,
 * because a payment to one is lost.
 * @throws ChainError `ASSET` for an unknown ticker
 */
export function validateAddress(
  registry: Registry,
  assetName: string,
  address: string,
  addressTag?: string | null,
): Validation {
  return validateBy(familyOf, registry, { asset: assetName, address, addressTag })
}
