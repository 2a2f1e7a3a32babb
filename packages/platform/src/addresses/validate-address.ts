import { validateAddress } from '@custody/chains'
import { z } from 'zod'
import { findAsset } from '../assets/find-asset.ts'
import { endpoint } from '../http/endpoint.ts'
import { assetName } from '../http/schemas.ts'

/** Says whether an address (and tag) can receive an asset, and why not. */
export const postValidateAddress = endpoint({
  id: 'validateAddress', tag: 'Addresses',
  description: 'Whether an address, with its tag, can be paid on the asset’s network; `reason` says why not. Writes nothing, and may '
    + 'be repeated.',
  errors: ['UNSUPPORTED_ASSET', 'NETWORK_UNAVAILABLE'],
  method: 'POST', path: '/dac/v1/validate-address', summary: 'Validate an address', access: 'read',
  body: z.strictObject({ asset: assetName, address: z.string().max(500), address_tag: z.string().max(200).optional() }),
  response: z.object({ valid: z.boolean(), reason: z.string().optional() }),
  async handler({ services, body }) {
    findAsset(services, body.asset)
    const result = validateAddress(services.registry, body.asset, body.address, body.address_tag)
    return { body: result.valid ? { valid: true } : { valid: false, reason: result.reason } }
  },
})
