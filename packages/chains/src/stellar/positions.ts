/**
 * Reads single fields of XDR structures by their position. A library that decodes a whole structure
 * fails on a union arm that it does not know, even if the needed field precedes that arm. Layouts:
 * stellar-xdr, Stellar-ledger.x and Stellar-ledger-entries.x.
 */

const HASH = 32
const UINT32 = 4
const UINT64 = 8
const UPGRADES_MAX = 6
const SIGNERS_MAX = 20
/** Size of a PublicKey: the type, which is always Ed25519, and the key. */
const PUBLIC_KEY = UINT32 + HASH
/**
 * Offset of the previous ledger's hash. A LedgerHeaderHistoryEntry consists of the hash and the
 * header, whose first field is the protocol version.
 */
const PREVIOUS_HASH_AT = HASH + UINT32
const SCP_VALUE_AT = PREVIOUS_HASH_AT + HASH
/**
 * Offsets in LedgerHeader between scpValue and baseReserve: txSetResultHash, bucketListHash,
 * ledgerSeq, totalCoins, feePool, inflationSeq, idPool, baseFee.
 */
const SEQUENCE_BEHIND = HASH + HASH
const BASE_RESERVE_BEHIND = SEQUENCE_BEHIND + UINT32 + UINT64 + UINT64 + UINT32 + UINT64 + UINT32

/** The data are truncated, or contain an arm of a union whose length is unknown here. */
class UnknownLayout extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'UnknownLayout'
  }
}

class Cursor {
  readonly #bytes: Buffer
  at: number

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.at = at
  }

  skip(length: number): number {
    const start = this.at
    if (length > this.#bytes.length - start) throw new UnknownLayout('the data end too early')
    this.at = start + length
    return start
  }

  uint32(): number {
    return this.#bytes.readUInt32BE(this.skip(UINT32))
  }

  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.skip(UINT64))
  }

  /** Reads a number of elements and checks it against the limit of the definition. */
  count(most: number, what: string): number {
    const count = this.uint32()
    if (count > most) throw new UnknownLayout(`${count} ${what} where at most ${most} are allowed`)
    return count
  }

  /** Skips opaque bytes of variable length, padded to a multiple of four. */
  skipOpaque(): void {
    const length = this.uint32()
    this.skip(length + ((4 - (length % 4)) % 4))
  }

  /** Skips a LedgerCloseValueSignature: a node's key and its signature. */
  skipSignature(): void {
    this.skip(PUBLIC_KEY)
    this.skipOpaque()
  }

  /** Skips a CAP-83 proposal: txSetHash, previousLedgerHash, previousLedgerVersion, signature. */
  skipProposal(): void {
    this.skip(HASH + HASH + UINT32)
    this.skipSignature()
  }
}

/** Skips `scpValue`, whose extension has five arms (CAP-34, CAP-83, CAP-88). */
function skipValue(cursor: Cursor): void {
  cursor.skip(HASH + UINT64)
  for (let left = cursor.count(UPGRADES_MAX, 'upgrades'); left > 0; left--) cursor.skipOpaque()
  const arm = cursor.uint32()
  switch (arm) {
    case 0:
      return
    case 1:
      return cursor.skipSignature()
    case 2:
      return cursor.skipProposal()
    case 3:
      cursor.skip(UINT64)
      return cursor.skipSignature()
    case 4:
      cursor.skip(UINT64)
      return cursor.skipProposal()
    default:
      throw new UnknownLayout(`StellarValue has an extension of the type ${arm}`)
  }
}

function headerBehindValue(xdr: string): { bytes: Buffer; at: number } {
  const bytes = Buffer.from(xdr, 'base64')
  const cursor = new Cursor(bytes, 0)
  cursor.skip(SCP_VALUE_AT)
  skipValue(cursor)
  return { bytes, at: cursor.at }
}

/**
 * Returns the hash of the previous ledger, in hex.
 * @param xdr LedgerHeaderHistoryEntry in base64
 * @throws UnknownLayout
 */
export function previousHashOf(xdr: string): string {
  const bytes = Buffer.from(xdr, 'base64')
  if (bytes.length < SCP_VALUE_AT) throw new UnknownLayout('the data end too early')
  return bytes.toString('hex', PREVIOUS_HASH_AT, SCP_VALUE_AT)
}

/**
 * Returns the hash of the results of a ledger's transactions, in hex.
 * @param xdr LedgerHeaderHistoryEntry in base64
 * @throws UnknownLayout
 */
export function resultsHashOf(xdr: string): string {
  const { bytes, at } = headerBehindValue(xdr)
  new Cursor(bytes, at).skip(HASH)
  return bytes.toString('hex', at, at + HASH)
}

/**
 * Returns the base reserve in stroops.
 * @param xdr LedgerHeaderHistoryEntry in base64
 * @param sequence of the ledger, which must be at the expected position in the header
 * @throws UnknownLayout
 */
export function baseReserveOf(xdr: string, sequence: number): bigint {
  const { bytes, at } = headerBehindValue(xdr)
  const named = new Cursor(bytes, at + SEQUENCE_BEHIND).uint32()
  // The sequence is the only field whose value is known. If it differs, the layout is another one,
  // and so are the positions of all later fields.
  if (named !== sequence)
    throw new UnknownLayout(`the header names the ledger ${named} where ${sequence} is expected`)
  return BigInt(new Cursor(bytes, at + BASE_RESERVE_BEHIND).uint32())
}

interface AccountFields {
  balance: bigint
  /** Sequence of the account's last transaction. */
  sequence: bigint
  subEntries: bigint
  /**
   * Number of entries whose reserve other accounts pay, minus the entries that this account pays
   * for others; null if the layout is unknown.
   */
  sponsored: bigint | null
}

/**
 * Reads the fields of an account.
 * @param xdr LedgerEntryData of an account, in base64
 * @throws UnknownLayout if it is not an account
 */
export function accountFieldsOf(xdr: string): AccountFields {
  const cursor = new Cursor(Buffer.from(xdr, 'base64'), 0)
  if (cursor.uint32() !== 0) throw new UnknownLayout('the entry is not an account')
  cursor.skip(PUBLIC_KEY)
  const balance = cursor.int64()
  const sequence = cursor.int64()
  const subEntries = BigInt(cursor.uint32())
  return { balance, sequence, subEntries, sponsored: sponsoredOf(cursor) }
}

function sponsoredOf(cursor: Cursor): bigint | null {
  try {
    if (cursor.uint32() === 1) cursor.skip(PUBLIC_KEY)
    cursor.skip(UINT32)
    cursor.skipOpaque()
    cursor.skip(UINT32)
    for (let left = cursor.count(SIGNERS_MAX, 'signers'); left > 0; left--) skipSigner(cursor)
    const extension = cursor.uint32()
    if (extension === 0) return 0n
    if (extension !== 1) return null
    cursor.skip(UINT64 + UINT64)
    const further = cursor.uint32()
    if (further === 0) return 0n
    return further === 2 ? BigInt(cursor.uint32()) - BigInt(cursor.uint32()) : null
  } catch (error) {
    if (error instanceof UnknownLayout) return null
    throw error
  }
}

/**
 * Skips SignerKey and weight: an Ed25519 key, a hash (of a transaction, or a preimage), or a key
 * with a payload (CAP-40).
 */
function skipSigner(cursor: Cursor): void {
  const type = cursor.uint32()
  if (type > 3) throw new UnknownLayout(`a signer of the type ${type}`)
  cursor.skip(HASH)
  if (type === 3) cursor.skipOpaque()
  cursor.skip(UINT32)
}

/**
 * Returns the fee that was charged, in stroops, which is the first field.
 * @param xdr TransactionResult in base64
 * @throws UnknownLayout
 */
export function feeChargedOf(xdr: string): bigint {
  return new Cursor(Buffer.from(xdr, 'base64'), 0).int64()
}
