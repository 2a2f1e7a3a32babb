import type { Family } from '../family.ts'
import { address, format, key, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, signing } from './transaction.ts'

export const cardano: Family = {
  traits,
  address,
  validate,
  key,
  format,
  decode,
  signing,
  assemble,
  exclusive,
}
