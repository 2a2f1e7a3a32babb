import { loadRegistry, policyRegistry, validateAddress } from '@custody/chains'
import type { Trust } from '@custody/client'
import {
  assertPlace as assertClientPlace,
  placeWith,
  type Place,
} from '@custody/client/approvals/parts'
import { judged } from './judged.ts'

export type { Place } from '@custody/client/approvals/parts'

/** Returns the installation of a trust file, which the client has validated. */
export function placeOf(trust: Trust): Place {
  const chains = loadRegistry(trust.network)
  return placeWith(trust, chains, {
    ...policyRegistry(chains),
    validate: (asset, address, tag) => validateAddress(chains, asset, address, tag),
  })
}

/**
 * Checks that a document or a statement is for this installation.
 * @throws ApproverError `OTHER_PLACE`
 */
export const assertPlace = (...args: Parameters<typeof assertClientPlace>): void =>
  judged(() => assertClientPlace(...args))
