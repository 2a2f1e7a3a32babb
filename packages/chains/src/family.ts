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

/** Tags of a network: destination tags (XRP) or memos (Stellar). */
export interface Tags {
  /**
   * Returns whether a valid address contains its tag, or states that it has none (X-address, M…).
   * Such an address accepts no separate tag.
   */
  isWithin(address: string): boolean
  /** Returns account and tag of an address that contains its tag; null for every other text. */
  split(address: string): { address: string; tag: string } | null
  /** Returns whether a text looks like a tag rather than a note, such as digits alone. */
  isLike(text: string): boolean
}

/**
 * The pure part of a chain family: it uses no network, no clock and no randomness. Every function
 * throws {@link ChainError} on input that it does not allow.
 */
export interface Family {
  traits: Traits
  /** Returns the address of a public key (33 bytes compressed secp256k1 or 32 bytes Ed25519). */
  address(network: Network, publicKey: Uint8Array): string
  /** Validates an address (and tag) of this network and returns its canonical spelling. */
  validate(network: Network, address: string, addressTag?: string | null): Validation
  /**
   * Decodes a transaction, rejects every shape that is not allow-listed, and checks that
   * re-encoding gives the same bytes.
   */
  decode(
    network: Network,
    unsigned: UnsignedTransaction,
    assets: readonly Asset[],
    publicKeyAt: PublicKeyAt,
  ): DecodedTransaction
  /** Returns the digests (or messages) to sign, one per input. */
  signing(network: Network, unsigned: UnsignedTransaction, publicKeyAt: PublicKeyAt): SigningItem[]
  /**
   * Inserts the signatures, verifies each against its public key, and returns the bytes to
   * broadcast and their hash.
   */
  assemble(
    network: Network,
    unsigned: UnsignedTransaction,
    signatures: SignatureBytes[],
    publicKeyAt: PublicKeyAt,
  ): SignedTransaction
  /**
   * Reads the signatures of a signed transaction, without verifying them. Absent if signed
   * transactions of the family cannot be cancelled.
   * @throws ChainError `SIGNATURE` if the transaction cannot be read
   */
  signaturesIn?(raw: string): SignatureBytes[]
  /** Returns true if at most one of the two transactions can ever be mined. */
  exclusive(earlier: DecodedTransaction, next: DecodedTransaction): boolean
  /** Tags that payments of the network may carry. Absent if the network has none. */
  tags?: Tags
  /**
   * Common name of the networks on which an address belongs to the same party. Absent: an address
   * is valid on its own network only.
   */
  space?: string
  /**
   * Returns the account behind an address of another format, or null if the address has no other
   * format.
   */
  accountOf?(address: string): string | null
  /**
   * Returns one spelling of an address for comparison, if it differs from the one that `validate`
   * returns.
   */
  key?(address: string): string
  /**
   * Returns a text that is the same for all addresses of the network from which the same key can
   * spend. Absent: such addresses have one canonical spelling.
   */
  paymentKey?(network: Network, address: string): string
  /**
   * Returns a form of the address that is the same on every network of this format, or null if it
   * is not an address.
   */
  format?(network: Network, address: string): string | null
  /**
   * Returns the same transaction with another nonce of its account. Absent if transactions have no
   * nonce.
   */
  renumber?(unsigned: UnsignedTransaction, nonce: bigint): UnsignedTransaction
}
