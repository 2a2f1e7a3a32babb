import type { Family } from '../types.ts'
import { address, splitMuxed, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, renumber, signing } from './transaction.ts'

export const stellar: Family = {
  traits, address, validate, accountOf: (text) => splitMuxed(text)?.account ?? null, decode, signing, assemble, exclusive, renumber,
}
