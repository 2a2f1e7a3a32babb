import { familyOf } from '../families.ts'
import type { Registry } from '../registry.ts'
import { addressRegistry, type AddressRegistry } from './address-registry.ts'

/** Returns the view of a registry on which policies are evaluated. */
export const policyRegistry = (registry: Registry): AddressRegistry =>
  addressRegistry(registry, familyOf)
