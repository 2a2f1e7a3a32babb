import type { Family } from '../family.ts'
import { address, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, renumber, signing } from './transaction.ts'

// What the platform's half takes. The signer nodes see the family alone.
export { buildTransfer } from './build.ts'
export { TemplateClient } from './rpc.ts'
export { LEAST_FEE } from './traits.ts'

/** The smallest family that is whole: accounts with a sequence, one coin, one signature. */
export const template: Family = {
  traits,
  address,
  validate,
  decode,
  signing,
  assemble,
  exclusive,
  renumber,
}
