import type { Family } from '../family.ts'
import { address, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, renumber, signing } from './transaction.ts'

// Exports for the platform. The signer nodes import only the family.
export { buildTransfer } from './build.ts'
export { TemplateClient } from './rpc.ts'
export { LEAST_FEE } from './traits.ts'

/** The smallest complete family: accounts with a sequence, one coin, one signature. */
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
