import { readTrust } from './trust.ts'
import { AddressVerifier } from './verifier.ts'

export { VerificationError } from './errors.ts'

/** Path of a verified address, and the nodes that certified its key. */
export interface AddressProof {
  asset: string
  address: string
  workspace: string
  sub_account: string
  path: number[]
  key_id: string
  certified_by: number[]
}

export interface SearchOptions {
  path?: readonly number[] | undefined
  indexMax: number
}

/**
 * Verifies an address with a saved response of GET /dac/v1/keys and a trust object, without
 * platform and network.
 *
 * @param options.path path of the address according to the service; without it every index up to
 *   `indexMax` is tried
 * @throws VerificationError if the address is not the sub-account's own
 */
export async function verifyAddress(
  trust: unknown,
  keys: unknown,
  asset: string,
  address: string,
  options: SearchOptions,
): Promise<AddressProof> {
  const pinned = readTrust(trust)
  const verifier = new AddressVerifier(pinned)
  verifier.takeKey(keys, verifier.curveOf(asset))
  const { path, keyId, certifiedBy } = await verifier.find(asset, address, options)
  return {
    asset,
    address,
    workspace: pinned.workspace,
    sub_account: pinned.sub_account,
    path,
    key_id: keyId,
    certified_by: certifiedBy,
  }
}
