import type { Family } from '../types.ts'
import { address, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, signing } from './transaction.ts'

export const cardano: Family = { traits, address, validate, decode, signing, assemble, exclusive }
