import type { xdr } from '@stellar/stellar-base'
import { decode as decodeXrp, encode as encodeXrp } from 'ripple-binary-codec'
import type { TransactionSerializable } from 'viem'
import { parseTransaction, serializeTransaction } from 'viem/utils'
import { library } from './stellar/library.ts'
import { ChainError, type Network, type UnsignedTransaction } from './types.ts'

/**
 * The same unsigned transaction at another place in its account's order.
 * @throws ChainError `SHAPE` where transactions of the family have no number
 */
export function withNonce(network: Network, unsigned: UnsignedTransaction, nonce: bigint): UnsignedTransaction {
  switch (network.family) {
    case 'evm':
      return {
        ...unsigned,
        bytes: serializeTransaction({ ...parseTransaction(`0x${unsigned.bytes}`), nonce: Number(nonce) } as TransactionSerializable).slice(
          2,
        ),
      }
    case 'xrp':
      return {
        ...unsigned,
        bytes: encodeXrp({ ...decodeXrp(unsigned.bytes.toUpperCase()), Sequence: Number(nonce) } as Parameters<
          typeof encodeXrp
        >[0]).toLowerCase(),
      }
    case 'stellar': {
      const { xdr: stellar } = library()
      const envelope = stellar.TransactionEnvelope.fromXDR(unsigned.bytes, 'hex')
      envelope
        .v1()
        .tx()
        .seqNum(stellar.Int64.fromString(nonce.toString()) as unknown as xdr.SequenceNumber)
      return { ...unsigned, bytes: envelope.toXDR('hex') }
    }
    default:
      throw new ChainError('SHAPE', `transactions of ${network.name} have no number`)
  }
}
