import type { Family } from '../types.ts'
import { address, validate } from './address.ts'
import { assemble, decode, exclusive, signing } from './transaction.ts'

export const cardano: Family = { name: 'cardano', address, validate, decode, signing, assemble, exclusive }
