import type { Family } from '../family.ts'
import { address, format, paymentKey, validate } from './address.ts'
import { findBy } from './address-library.ts'
import { library } from './library.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, signaturesIn, signing } from './transaction.ts'

findBy(library)

export const utxo: Family = {
  traits,
  address,
  validate,
  paymentKey,
  format,
  decode,
  signing,
  assemble,
  signaturesIn,
  exclusive,
}
