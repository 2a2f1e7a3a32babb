import { bytesToHex } from '@noble/hashes/utils.js'
import { ChainError, type Network, type UnsignedTransaction } from '../types.ts'
import { address, readTag } from './address.ts'
import { library } from './library.ts'

/**
 * Lifetime of a transaction in ledgers: long enough for three nodes to sign, short enough that a
 * lost transaction soon expires.
 */
export const LEDGERS_TO_LIVE = 60

/**
 * Builds an unsigned payment of XRP.
 * @param o.amount drops
 * @param o.validUntil LastLedgerSequence
 * @param o.publicKey of the sending account, 33 bytes
 */
export function buildPayment(
  network: Network,
  o: {
    to: string
    tag: string | null
    amount: bigint
    fee: bigint
    sequence: bigint
    validUntil: number
    publicKey: Uint8Array
    path: number[]
  },
): UnsignedTransaction {
  const tag = o.tag === null ? null : readTag(o.tag)
  if (o.tag !== null && tag === null)
    throw new ChainError('TAG', `${o.tag} is not a destination tag`)
  const bytes = library().encode({
    TransactionType: 'Payment',
    Flags: 0,
    Account: address(network, o.publicKey),
    Destination: o.to,
    ...(tag === null ? {} : { DestinationTag: tag }),
    Amount: o.amount.toString(),
    Fee: o.fee.toString(),
    Sequence: Number(o.sequence),
    LastLedgerSequence: o.validUntil,
    SigningPubKey: bytesToHex(o.publicKey).toUpperCase(),
  })
  return { network: network.code, bytes: bytes.toLowerCase(), inputs: [{ path: o.path }] }
}
