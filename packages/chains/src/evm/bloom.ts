import { contains } from 'ox/Bloom'
import { keccak256 } from 'ox/Hash'
import { fromHex } from 'ox/Bytes'

/** keccak256("Transfer(address,address,uint256)") */
export const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

const BLOOM_HEX = /^0x[0-9a-fA-F]{512}$/
const BLOOM_BYTES = 256

interface Logged {
  address: string
  topics: readonly string[]
}

export const isBloom = (bloom: unknown): bloom is string =>
  typeof bloom === 'string' && BLOOM_HEX.test(bloom)

/**
 * Returns whether a bloom filter indicates a Transfer log of a contract. It is true for every
 * contract that has one, and rarely for others, if many logs share the filter. Returns false if
 * there is no bloom filter, as on some networks (Yellow Paper, 4.4.3).
 * @param bloom of a block or a receipt, hex
 */
export function mayTellOfTransfer(bloom: string | undefined, contract: string): boolean {
  return (
    isBloom(bloom) &&
    contains(bloom as `0x${string}`, contract.toLowerCase() as `0x${string}`) &&
    contains(bloom as `0x${string}`, TRANSFER_TOPIC)
  )
}

/**
 * Computes the bloom filter of logs, in hex: three bits for the address and for each topic (Yellow
 * Paper, 4.4.1).
 */
export function bloomOf(logs: readonly Logged[]): string {
  const bloom = Buffer.alloc(BLOOM_BYTES)
  for (const text of new Set(
    logs.flatMap(({ address, topics }) => [address.toLowerCase(), ...topics]),
  )) {
    const hash = keccak256(fromHex(text as `0x${string}`), { as: 'Bytes' })
    for (const at of [0, 2, 4]) {
      const bit = (((hash[at] as number) << 8) + (hash[at + 1] as number)) & 0x7ff
      const byte = BLOOM_BYTES - 1 - (bit >> 3)
      bloom[byte] = (bloom[byte] as number) | (1 << (bit & 7))
    }
  }
  return `0x${bloom.toString('hex')}`
}
