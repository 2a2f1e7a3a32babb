import { base64 } from '@scure/base'
import { ChainError } from '../types.ts'
import { readMemo } from './memo.ts'

/**
 * Builds a SEP-7 URI. `amount` is in whole coins; `passphrase` is needed for every network but the
 * public one.
 */
export function paymentUri(o: {
  address: string
  tag?: string | null
  amount?: string
  passphrase?: string
}): string {
  const query = new URLSearchParams({
    destination: o.address,
    ...(o.amount === undefined ? {} : { amount: o.amount }),
  })
  const memo = o.tag === undefined || o.tag === null ? null : readMemo(o.tag)
  if (memo && 'reason' in memo) throw new ChainError('TAG', memo.reason)
  if (memo) {
    query.set(
      'memo',
      memo.kind === 'id' || memo.kind === 'text' ? memo.text : base64.encode(memo.bytes),
    )
    query.set('memo_type', `MEMO_${memo.kind.toUpperCase()}`)
  }
  if (o.passphrase !== undefined) query.set('network_passphrase', o.passphrase)
  // Spaces are encoded as %20, because some wallets do not decode a plus.
  return `web+stellar:pay?${query.toString().replaceAll('+', '%20')}`
}
