import type { Family } from '../family.ts'
import { address, tags, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, renumber, signing } from './transaction.ts'

export const xrp: Family = {
  traits,
  address,
  validate,
  tags,
  decode,
  signing,
  assemble,
  exclusive,
  renumber,
}
