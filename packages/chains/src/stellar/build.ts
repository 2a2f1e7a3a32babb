import type { xdr } from '@stellar/stellar-base'
import { ChainError, type Network, type UnsignedTransaction } from '../types.ts'
import { splitMuxed } from './address.ts'
import { library } from './library.ts'
import { readMemo } from './memo.ts'
import { xdrOf } from './memo-xdr.ts'
import { muxedOf } from './muxed.ts'

export { splitMuxed } from './address.ts'

/**
 * Lifetime of a transaction in seconds: long enough for three nodes to sign, short enough that a
 * lost transaction soon expires.
 */
export const SECONDS_TO_LIVE = 300

/**
 * Builds an unsigned payment, or the creation of the account if the destination does not exist yet.
 * @param o.amount stroops
 * @param o.fee stroops for the one operation
 * @param o.validUntil Unix seconds
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
    create: boolean
    publicKey: Uint8Array
    path: number[]
  },
): UnsignedTransaction {
  const { StrKey, xdr } = library()
  const memo = o.tag === null ? null : readMemo(o.tag)
  if (memo && 'reason' in memo) throw new ChainError('TAG', memo.reason)
  if (o.create && splitMuxed(o.to))
    throw new ChainError('SHAPE', 'an account cannot be created through an M… address')
  const amount = xdr.Int64.fromString(o.amount.toString())
  const body = o.create
    ? xdr.OperationBody.createAccount(
        new xdr.CreateAccountOp({
          destination: xdr.PublicKey.publicKeyTypeEd25519(StrKey.decodeEd25519PublicKey(o.to)),
          startingBalance: amount,
        }),
      )
    : xdr.OperationBody.payment(
        new xdr.PaymentOp({
          destination: muxedOf(o.to),
          asset: xdr.Asset.assetTypeNative(),
          amount,
        }),
      )
  const transaction = new xdr.Transaction({
    sourceAccount: xdr.MuxedAccount.keyTypeEd25519(Buffer.from(o.publicKey)),
    fee: Number(o.fee),
    seqNum: xdr.Int64.fromString(o.sequence.toString()) as unknown as xdr.SequenceNumber,
    cond: xdr.Preconditions.precondTime(
      new xdr.TimeBounds({
        minTime: xdr.Uint64.fromString('0') as unknown as xdr.TimePoint,
        maxTime: xdr.Uint64.fromString(String(o.validUntil)) as unknown as xdr.TimePoint,
      }),
    ),
    memo: memo ? xdrOf(memo) : xdr.Memo.memoNone(),
    operations: [new xdr.Operation({ sourceAccount: null, body })],
    ext: new xdr.TransactionExt(0),
  })
  const envelope = xdr.TransactionEnvelope.envelopeTypeTx(
    new xdr.TransactionV1Envelope({ tx: transaction, signatures: [] }),
  )
  return { network: network.code, bytes: envelope.toXDR('hex'), inputs: [{ path: o.path }] }
}
