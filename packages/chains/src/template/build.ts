import { ChainError, type Network, type UnsignedTransaction } from '../types.ts'
import { read } from './address.ts'
import { encode } from './transaction.ts'

/**
 * Validity period of a transaction in seconds: long enough for the nodes to sign it more than once,
 * short enough that a lost transaction soon expires.
 */
export const SECONDS_TO_LIVE = 600

/**
 * Builds an unsigned payment of the native coin. The function is pure: all data from the chain is
 * passed as a parameter.
 * @param o.to address of the receiver
 * @param o.amount smallest unit
 * @param o.fee smallest unit
 * @param o.sequence next sequence of the sending account
 * @param o.validUntil Unix seconds
 * @param o.publicKey of the sending account, 33 bytes
 * @param o.path derivation path of the sending account
 * @throws ChainError `ADDRESS`, `NETWORK`
 */
export function buildTransfer(
  network: Network,
  o: {
    to: string
    amount: bigint
    fee: bigint
    sequence: bigint
    validUntil: number
    publicKey: Uint8Array
    path: number[]
  },
): UnsignedTransaction {
  const to = read(o.to)
  if (!to) throw new ChainError('ADDRESS', `${o.to} is not an address of ${network.name}`)
  if (network.network_id === undefined)
    throw new ChainError('NETWORK', `${network.code} has no network_id`)
  return {
    network: network.code,
    bytes: encode({ ...o, networkId: network.network_id, to }),
    inputs: [{ path: o.path }],
  }
}
