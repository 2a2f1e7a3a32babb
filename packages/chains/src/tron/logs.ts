import { bytesToHex } from '@noble/hashes/utils.js'
import { RpcUnavailable, type ExpectedTransfer } from '../rpc.ts'
import { addressBytes, addressOfHex } from './address.ts'
import type { Log } from './api-types.ts'

/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER_TOPIC = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** An address of an answer. @throws RpcUnavailable where it is none */
export function addressIn(hex: string): string {
  try {
    return addressOfHex(hex)
  } catch {
    throw new RpcUnavailable('TRX: the node returned an invalid address')
  }
}

/**
 * The account that called a contract; null, and screening is incomplete, where the answer does not
 * name one.
 */
export function callerOf(owner: unknown): string | null {
  return typeof owner === 'string' && /^41[0-9a-fA-F]{40}$/.test(owner) ? addressIn(owner) : null
}

/** What a log says of a token that moved; null where it is no Transfer event, or of nothing. */
export function transferOf({
  topics,
  data,
}: Log): { from: string; to: string; amount: bigint } | null {
  if (topics?.length !== 3 || topics[0] !== TRANSFER_TOPIC || !/^[0-9a-f]{64}$/.test(data ?? ''))
    return null
  const amount = BigInt(`0x${data as string}`)
  const party = (at: number) => addressIn((topics[at] as string).slice(24))
  return amount === 0n ? null : { from: party(1), to: party(2), amount }
}

/**
 * Whether the token's own Transfer event says that something went from one address to the other.
 */
export function hasTransfer(logs: readonly Log[], expected: ExpectedTransfer): boolean {
  const contract = bytesToHex(addressBytes(expected.asset.contract_address as string).subarray(1))
  return logs.some((log) => {
    const moved = log.address.toLowerCase() === contract ? transferOf(log) : null
    return moved !== null && moved.from === expected.from && moved.to === expected.to
  })
}
