import { compact, data, display, Reader, uint64 } from './encoding.ts'

// CashTokens of Bitcoin Cash (CHIP-2022-02): the prefix of an output's script, in transactions and
// in the ledger's coins.

const PREFIX = 0xef
const HAS_AMOUNT = 0x10
const HAS_NFT = 0x20
const HAS_COMMITMENT = 0x40
const CAPABILITIES = ['none', 'mutable', 'minting'] as const
const COMPACT_64 = 0xff

export type Capability = (typeof CAPABILITIES)[number]
export interface Token {
  category: Buffer
  amount: bigint
  nft: { capability: Capability; commitment: Buffer } | null
}

export const isCapability = (value: unknown): value is Capability =>
  CAPABILITIES.includes(value as Capability)

/** Returns the prefix that precedes a locking script. `category` is in the byte order of inputs. */
export function tokenPrefix({ category, amount, nft }: Token): Buffer {
  const flags =
    (amount > 0n ? HAS_AMOUNT : 0) |
    (nft ? HAS_NFT | CAPABILITIES.indexOf(nft.capability) : 0) |
    (nft && nft.commitment.length > 0 ? HAS_COMMITMENT : 0)
  return Buffer.concat([
    Buffer.from([PREFIX]),
    category,
    Buffer.from([flags]),
    ...(nft && nft.commitment.length > 0 ? [data(nft.commitment)] : []),
    ...(amount > 0n ? [writeAmount(amount)] : []),
  ])
}

const writeAmount = (amount: bigint): Buffer =>
  amount < 0x1_0000_0000n
    ? compact(Number(amount))
    : Buffer.concat([Buffer.from([COMPACT_64]), uint64(amount)])

/** Splits an output's script into the token prefix and the locking script. */
export function splitToken(script: Buffer): { token: Token | undefined; locking: Buffer } {
  if (script[0] !== PREFIX) return { token: undefined, locking: script }
  const reader = new Reader(script)
  reader.uint8()
  const category = reader.bytes(32)
  const flags = reader.uint8()
  const commitment = flags & HAS_COMMITMENT ? reader.data() : Buffer.alloc(0)
  const capability = CAPABILITIES[flags & 0x0f] ?? 'none'
  const amount = flags & HAS_AMOUNT ? readAmount(reader) : 0n
  return {
    token: { category, amount, nft: flags & HAS_NFT ? { capability, commitment } : null },
    locking: script.subarray(reader.at),
  }
}

function readAmount(reader: Reader): bigint {
  if (reader.buffer[reader.at] !== COMPACT_64) return BigInt(reader.compact())
  reader.uint8()
  return reader.uint64()
}

/** Returns the token in the form of Bitcoin Cash Node, which returns it next to `scriptPubKey`. */
export function tokenData(token: Token | undefined): Record<string, unknown> | undefined {
  return (
    token && {
      category: display(token.category),
      amount: token.amount.toString(),
      nft: token.nft
        ? { capability: token.nft.capability, commitment: token.nft.commitment.toString('hex') }
        : undefined,
    }
  )
}
