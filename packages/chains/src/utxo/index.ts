import type { Family } from '../types.ts'
import { address, format, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, signing } from './transaction.ts'

export const utxo: Family = { traits, address, validate, format, decode, signing, assemble, exclusive }
