import type { Family, FamilyName } from '../types.ts'
import { address, validate } from './address.ts'
import { traits } from './traits.ts'
import { assemble, decode, exclusive, signing } from './transaction.ts'

/** Copy this folder, rename it, fill it, and add the family to families.ts. It is registered nowhere. */
export const template = (name: FamilyName): Family => ({ name, traits, address, validate, decode, signing, assemble, exclusive })
