import { readTrust } from './trust.ts'
import { AddressVerifier } from './verifier.ts'

export { VerificationError } from './errors.ts'

/** Where an address is, and who says so. */
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
 * Checks an address by a saved answer of GET /dac/v1/keys and a trust object: no platform, no
 * network.
 *
 * @param options.path where the service says the address is; without it every index up to
 *   `indexMax` is tried
 * @throws VerificationError where the address is not the sub-account's own
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
