import { familyOf, validateAddress, type Asset, type Network, type Registry } from '@custody/chains'
import { z } from 'zod'
import { ADDRESS_MAX, MESSAGE_MAX, NAME_MAX } from '../../core/bounds.ts'
import { findAsset } from '../assets/find-asset.ts'
import { withTimeout } from '../../core/engine/with-timeout.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName } from '../../core/http/schemas.ts'

interface Services {
  environment: Environment
  registry: Registry
  networks: Networks
}

/**
 * An amount sufficient to create any account, so that only the tag can be the reason for a refusal.
 */
const AMPLE = 2n ** 62n

/** Tells whether an address (with its tag) can receive an asset, and why not. */
export const postValidateAddress = endpoint({
  id: 'validateAddress',
  tag: 'Addresses',
  description:
    'Checks whether an address, with its tag, can receive payments of the asset; `reason` explains why not. For a valid address of an asset with tags, the response also contains the tag that a payment would carry and whether the account rejects payments without a tag. The operation writes nothing and can be repeated.',
  errors: ['UNSUPPORTED_ASSET', 'NETWORK_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/validate-address',
  summary: 'Validate an address',
  access: 'read',
  body: z.strictObject({
    asset: assetName,
    address: z.string().max(500),
    address_tag: z.string().max(200).optional(),
  }),
  response: z.object({
    valid: z.boolean(),
    reason: z.string().max(MESSAGE_MAX).optional(),
    address: z.string().max(ADDRESS_MAX).optional().meta({
      description:
        'The address as transactions list it (`destination_id`), present if the request spells it differently',
    }),
    address_tag: z.string().max(NAME_MAX).nullable().optional().meta({
      description:
        'Tag that a payment would carry: the one in the request, or the one inside an X-address; null: none',
    }),
    takes_tag: z.boolean().optional().meta({
      description:
        'false: the address contains its tag, or states that it has none (X-address, M…), and accepts no other',
    }),
    requires_tag: z.boolean().nullable().optional().meta({
      description:
        'true: the account rejects payments without a tag; null: its chain did not respond within two seconds',
    }),
  }),
  async handler({ body }, services: Services) {
    const { asset, network } = findAsset(services, body.asset)
    const result = validateAddress(services.registry, body.asset, body.address, body.address_tag)
    if (!result.valid) return { body: { valid: false, reason: result.reason } }
    const { tags } = familyOf(network)
    const existing = {
      valid: true,
      ...(result.address === body.address ? {} : { address: result.address }),
    }
    if (!tags) return { body: existing }
    const takesTag = !tags.isWithin(body.address)
    return {
      body: {
        ...existing,
        address_tag: result.address_tag,
        takes_tag: takesTag,
        requires_tag: takesTag
          ? await requiresTag(services, asset, network, result.address)
          : false,
      },
    }
  },
})

/**
 * Whether an account refuses payments without a tag; null if its chain does not respond in time.
 */
function requiresTag(
  services: Services,
  asset: Asset,
  network: Network,
  to: string,
): Promise<boolean | null> {
  const refusal = services.networks
    .get(network.code)
    .refusal({ to, tag: null, amount: AMPLE, asset })
  return withTimeout<boolean | null>(
    services.environment,
    refusal.then((reason) => reason?.field === 'address_tag'),
    null,
  )
}
