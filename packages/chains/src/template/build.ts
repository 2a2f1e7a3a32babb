import { ChainError, type Network, type UnsignedTransaction } from '../types.ts'
import { read } from './address.ts'
import { encode } from './transaction.ts'

/**
 * Long enough for the nodes to sign it more than once over, short enough that a lost one is soon
 * known to be dead.
 */
export const SECONDS_TO_LIVE = 600

/**
 * An unsigned payment of the native coin. Pure: everything that must be asked of the chain comes in
 * as a parameter.
 * @param o.amount smallest unit, as `fee`
 * @param o.validUntil Unix seconds
 * @param o.publicKey of the sending account, 33 bytes
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
