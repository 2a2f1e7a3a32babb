import { bytesToHex } from '@noble/hashes/utils.js'
import { RpcUnavailable, type ExpectedTransfer } from '../rpc.ts'
import { addressBytes, addressOfHex } from './address.ts'
import type { Log } from './api-types.ts'

/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER_TOPIC = 'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/**
 * Reads an address of a response.
 * @throws RpcUnavailable if it is not an address
 */
export function addressIn(hex: string): string {
  try {
    return addressOfHex(hex)
  } catch {
    throw new RpcUnavailable('TRX: the node returned an invalid address')
  }
}

/**
 * Returns the account that called a contract; null, which makes screening incomplete, if the
 * response does not contain it.
 */
export function callerOf(owner: unknown): string | null {
  return typeof owner === 'string' && /^41[0-9a-fA-F]{40}$/.test(owner) ? addressIn(owner) : null
}

/** Reads the token transfer of a log; null if it is not a Transfer event, or moves nothing. */
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
 * Returns whether the token's own Transfer event reports the expected transfer from one address to
 * the other.
 */
export function hasTransfer(logs: readonly Log[], expected: ExpectedTransfer): boolean {
  const contract = bytesToHex(addressBytes(expected.asset.contract_address as string).subarray(1))
  return logs.some((log) => {
    const moved = log.address.toLowerCase() === contract ? transferOf(log) : null
    return moved !== null && moved.from === expected.from && moved.to === expected.to
  })
}
