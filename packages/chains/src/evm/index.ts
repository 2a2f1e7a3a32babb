import type { Family } from '../family.ts'
import { address, format, key, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, renumber, signaturesIn, signing } from './transaction.ts'

export const evm: Family = {
  space: 'evm',
  traits,
  address,
  validate,
  key,
  format,
  decode,
  signing,
  assemble,
  signaturesIn,
  exclusive,
  renumber,
}
