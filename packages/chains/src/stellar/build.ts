import type { xdr } from '@stellar/stellar-base'
import { ChainError, type Network, type UnsignedTransaction } from '../types.ts'
import { muxedOf, splitMuxed } from './address.ts'
import { readMemo } from './memo.ts'
import { library } from './library.ts'

export { splitMuxed } from './address.ts'

/** How long a transaction lives: three nodes have time to sign, and a lost one is soon known to be dead. */
export const SECONDS_TO_LIVE = 300

/** SEP-7. `amount` in whole coins; `passphrase` of every network but the public one. */
export function paymentUri(o: { address: string; tag?: string | null; amount?: string; passphrase?: string }): string {
  const query = new URLSearchParams({ destination: o.address, ...(o.amount === undefined ? {} : { amount: o.amount }) })
  const read = o.tag === undefined || o.tag === null ? null : readMemo(o.tag)
  if (read && 'reason' in read) throw new ChainError('TAG', read.reason)
  if (read) {
    const { memo } = read
    const [kind, value] = memo.switch().name === 'memoId' ? ['MEMO_ID', memo.id().toString()]
      : memo.switch().name === 'memoText' ? ['MEMO_TEXT', Buffer.from(memo.text()).toString('utf8')]
        : memo.switch().name === 'memoHash' ? ['MEMO_HASH', memo.hash().toString('base64')]
          : ['MEMO_RETURN', memo.retHash().toString('base64')]
    query.set('memo', value)
    query.set('memo_type', kind)
  }
  if (o.passphrase !== undefined) query.set('network_passphrase', o.passphrase)
  // Spaces as %20: not every wallet reads a plus.
  return `web+stellar:pay?${query.toString().replaceAll('+', '%20')}`
}

/**
 * Builds an unsigned payment, or the creation of the account where the destination has none yet.
 * @param o.amount stroops
 * @param o.fee stroops for the one operation
 * @param o.validUntil Unix seconds
 */
export function buildPayment(
  network: Network,
  o: {
    to: string; tag: string | null; amount: bigint; fee: bigint; sequence: bigint; validUntil: number; create: boolean;
    publicKey: Uint8Array; path: number[]
  }
): UnsignedTransaction {
  const { StrKey, xdr } = library()
  const memo = o.tag === null ? { memo: xdr.Memo.memoNone() } : readMemo(o.tag)
  if ('reason' in memo) throw new ChainError('TAG', memo.reason)
  if (o.create && splitMuxed(o.to)) throw new ChainError('SHAPE', 'an account cannot be created through an M… address')
  const amount = xdr.Int64.fromString(o.amount.toString())
  const body = o.create
    ? xdr.OperationBody.createAccount(
      new xdr.CreateAccountOp({
        destination: xdr.PublicKey.publicKeyTypeEd25519(StrKey.decodeEd25519PublicKey(o.to)), startingBalance: amount,
      })
    )
    : xdr.OperationBody.payment(new xdr.PaymentOp({ destination: muxedOf(o.to), asset: xdr.Asset.assetTypeNative(), amount }))
  const transaction = new xdr.Transaction({
    sourceAccount: xdr.MuxedAccount.keyTypeEd25519(Buffer.from(o.publicKey)),
    fee: Number(o.fee),
    seqNum: xdr.Int64.fromString(o.sequence.toString()) as unknown as xdr.SequenceNumber,
    cond: xdr.Preconditions.precondTime(
      new xdr.TimeBounds({
        minTime: xdr.Uint64.fromString('0') as unknown as xdr.TimePoint,
        maxTime: xdr.Uint64.fromString(String(o.validUntil)) as unknown as xdr.TimePoint,
      })
    ),
    memo: memo.memo,
    operations: [new xdr.Operation({ sourceAccount: null, body })],
    ext: new xdr.TransactionExt(0),
  })
  const envelope = xdr.TransactionEnvelope.envelopeTypeTx(new xdr.TransactionV1Envelope({ tx: transaction, signatures: [] }))
  return { network: network.code, bytes: envelope.toXDR('hex'), inputs: [{ path: o.path }] }
}
