import type { TokenFacts } from '../rpc.ts'

/** First byte of an output script that has tokens before the locking script. */
export const TOKEN_PREFIX = 0xef
const HAS_AMOUNT = 0x10
const HAS_NFT = 0x20
const HAS_COMMITMENT = 0x40
const RESERVED = 0x80
const CAPABILITY_BITS = 0x0f
const CATEGORY_BYTES = 32
const CAPABILITIES = ['none', 'mutable', 'minting'] as const
const AMOUNT_MAX = 0x7fff_ffff_ffff_ffffn
/**
 * Maximum stored length of a commitment in bytes. Networks allow 40 bytes, and 128 since May 2026;
 * longer ones are not stored.
 */
const COMMITMENT_BYTES_MAX = 1024

/**
 * Reads the tokens of an output from a node's `tokenData`.
 * @returns null if a field is missing or does not have the form that CHIP-2022-02 prescribes
 */
export function tokenFacts(data: unknown): TokenFacts | null {
  if (typeof data !== 'object' || data === null) return null
  const {
    category,
    amount = '0',
    nft,
  } = data as { category?: unknown; amount?: unknown; nft?: unknown }
  if (typeof category !== 'string' || !/^[0-9a-f]{64}$/i.test(category)) return null
  if (typeof amount !== 'string' || !/^\d{1,19}$/.test(amount) || BigInt(amount) > AMOUNT_MAX)
    return null
  const fungible = BigInt(amount).toString()
  if (nft === undefined || nft === null)
    return { category: category.toLowerCase(), amount: fungible, nft: null }
  if (typeof nft !== 'object') return null
  const { capability, commitment = '' } = nft as { capability?: unknown; commitment?: unknown }
  const existing = CAPABILITIES.find((each) => each === capability)
  if (existing === undefined || typeof commitment !== 'string') return null
  if (
    commitment.length % 2 !== 0 ||
    commitment.length > 2 * COMMITMENT_BYTES_MAX ||
    !/^[0-9a-f]*$/i.test(commitment)
  )
    return null
  return {
    category: category.toLowerCase(),
    amount: fungible,
    nft: { capability: existing, commitment: commitment.toLowerCase() },
  }
}

/**
 * Reads the tokens before a locking script (`PREFIX_TOKEN` of CHIP-2022-02), for nodes that return
 * the whole script of an output.
 * @returns null if the bytes are not such a prefix; the script then has no address
 */
export function splitTokens(script: Buffer): { facts: TokenFacts; locking: Buffer } | null {
  if (script[0] !== TOKEN_PREFIX || script.length < CATEGORY_BYTES + 2) return null
  // The byte order is that of an input; nodes and explorers display a transaction's id reversed.
  const category = Buffer.from(script.subarray(1, CATEGORY_BYTES + 1))
    .reverse()
    .toString('hex')
  const flags = script[CATEGORY_BYTES + 1] as number
  let at = CATEGORY_BYTES + 2
  const hasNft = (flags & HAS_NFT) !== 0
  const capability = CAPABILITIES[flags & CAPABILITY_BITS]
  if (
    (flags & RESERVED) !== 0 ||
    capability === undefined ||
    (flags & (HAS_NFT | HAS_AMOUNT)) === 0
  )
    return null
  if (!hasNft && (flags & (HAS_COMMITMENT | CAPABILITY_BITS)) !== 0) return null
  let commitment = Buffer.alloc(0)
  if ((flags & HAS_COMMITMENT) !== 0) {
    const length = compactSize(script, at)
    if (length === null || length.value === 0n || length.value > BigInt(COMMITMENT_BYTES_MAX))
      return null
    at = length.end + Number(length.value)
    if (at > script.length) return null
    commitment = script.subarray(length.end, at) as Buffer<ArrayBuffer>
  }
  let amount = 0n
  if ((flags & HAS_AMOUNT) !== 0) {
    const size = compactSize(script, at)
    if (size === null || size.value === 0n || size.value > AMOUNT_MAX) return null
    amount = size.value
    at = size.end
  }
  return {
    facts: {
      category,
      amount: amount.toString(),
      nft: hasNft ? { capability, commitment: commitment.toString('hex') } : null,
    },
    locking: script.subarray(at),
  }
}

/** Reads a CompactSize number at a position, and returns its end; null if it is truncated. */
function compactSize(bytes: Buffer, at: number): { value: bigint; end: number } | null {
  const first = bytes[at]
  if (first === undefined) return null
  const width = first < 0xfd ? 0 : first === 0xfd ? 2 : first === 0xfe ? 4 : 8
  const end = at + 1 + width
  if (end > bytes.length) return null
  if (width === 0) return { value: BigInt(first), end }
  const value =
    width === 2
      ? BigInt(bytes.readUInt16LE(at + 1))
      : width === 4
        ? BigInt(bytes.readUInt32LE(at + 1))
        : bytes.readBigUInt64LE(at + 1)
  return { value, end }
}
