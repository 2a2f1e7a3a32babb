import type { Traits } from './traits.ts'
import type {
  Asset,
  DecodedTransaction,
  Network,
  PublicKeyAt,
  SignatureBytes,
  SignedTransaction,
  SigningItem,
  UnsignedTransaction,
  Validation,
} from './types.ts'

/** What a network's tags are: destination tags (XRP) or memos (Stellar). */
export interface Tags {
  /**
   * Whether a valid address contains its tag, or states that it has none (X-address, M…): it takes
   * no other.
   */
  isWithin(address: string): boolean
  /** Whether a text by itself has the form of a tag rather than of a note, such as digits alone. */
  isLike(text: string): boolean
}

/**
 * The pure part of a chain family: no network, no clock, no randomness.
 * Every function throws {@link ChainError} on input it does not allow.
 */
export interface Family {
  traits: Traits
  /** Address of a public key (33 bytes compressed secp256k1 or 32 bytes Ed25519). */
  address(network: Network, publicKey: Uint8Array): string
  /** Checks an address (and tag) of this network; the answer carries the canonical spelling. */
  validate(network: Network, address: string, addressTag?: string | null): Validation
  /**
   * Decodes, refuses every shape that is not allow-listed, and checks that re-encoding gives the
   * same bytes.
   */
  decode(
    network: Network,
    unsigned: UnsignedTransaction,
    assets: readonly Asset[],
    publicKeyAt: PublicKeyAt,
  ): DecodedTransaction
  /** The digests (or messages) to sign, one per input. */
  signing(network: Network, unsigned: UnsignedTransaction, publicKeyAt: PublicKeyAt): SigningItem[]
  /**
   * Puts signatures in, verifies each against its public key, and returns the bytes to broadcast
   * with their hash.
   */
  assemble(
    network: Network,
    unsigned: UnsignedTransaction,
    signatures: SignatureBytes[],
    publicKeyAt: PublicKeyAt,
  ): SignedTransaction
  /** True when at most one of the two can ever be mined. */
  exclusive(earlier: DecodedTransaction, next: DecodedTransaction): boolean
  /** The tags that payments of the network may carry. Absent where it has none. */
  tags?: Tags
  /**
   * Where an address means the same party on several networks: their common name. Absent: on its
   * network alone.
   */
  space?: string
  /** The account behind an address of another form, or null where it is of no other form. */
  accountOf?(address: string): string | null
  /** One spelling of an address for comparison, where `validate` answers another. */
  key?(address: string): string
  /** What an address looks like on every network of the same format, or null where it is none. */
  format?(network: Network, address: string): string | null
  /**
   * The same transaction under another number of its account. Absent where transactions have none.
   */
  renumber?(unsigned: UnsignedTransaction, nonce: bigint): UnsignedTransaction
}
