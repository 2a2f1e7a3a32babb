import type { Family } from '../types.ts'
import { address, validate } from './address.ts'
import { assemble, decode, exclusive, signing } from './transaction.ts'

export const xrp: Family = { name: 'xrp', address, validate, decode, signing, assemble, exclusive }
