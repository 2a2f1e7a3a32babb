import type { Family } from '../family.ts'
import { address, format, key, paymentKey, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, signing } from './transaction.ts'

export const cardano: Family = {
  traits,
  address,
  validate,
  key,
  paymentKey,
  format,
  decode,
  signing,
  assemble,
  exclusive,
}
