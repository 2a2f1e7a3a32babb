import type { Family } from '../family.ts'
import { address, paymentKey, splitMuxed, tags, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, renumber, signing } from './transaction.ts'

export const stellar: Family = {
  traits,
  address,
  validate,
  tags,
  paymentKey,
  accountOf: (text) => splitMuxed(text)?.account ?? null,
  decode,
  signing,
  assemble,
  exclusive,
  renumber,
}
