import { loadRegistry, policyRegistry, validateAddress } from '@custody/chains'
import type { Trust } from '@custody/client'
import {
  assertPlace as assertClientPlace,
  placeWith,
  type Place as ClientPlace,
} from '@custody/client/approvals/parts'
import { judged } from './judged.ts'

export interface Place extends ClientPlace {
  /** Origins of the control panel: that of the platform. */
  readonly panelOrigins: readonly string[]
}

/**
 * Returns the installation of a trust file, which the client has validated.
 * @param platform URL of the platform
 */
export function placeOf(trust: Trust, platform: string): Place {
  const chains = loadRegistry(trust.network)
  const registry = {
    ...policyRegistry(chains),
    validate: (asset: string, address: string, tag: string | null) =>
      validateAddress(chains, asset, address, tag),
  }
  return { ...placeWith(trust, chains, registry), panelOrigins: [new URL(platform).origin] }
}

/** What is known here around a document: the API keys would be the platform's word. */
export const surroundingsOf = ({ registry, panelOrigins }: Place) => ({
  registry,
  panelOrigins,
  enrolled: null,
})

/**
 * Checks that a document or a statement is for this installation.
 * @throws ApproverError `OTHER_PLACE`
 */
export const assertPlace = (...args: Parameters<typeof assertClientPlace>): void =>
  judged(() => assertClientPlace(...args))
