import { byMode } from '@custody/chains/mode'
import { formatAmount, type Registry } from '@custody/chains'
import { z } from 'zod'
import { exact, showUsd } from '../../core/decimals.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { WORKSPACE, workspaceParams } from './workspace.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  settings: Pick<
    Settings,
    | 'authLegacy'
    | 'feeBumpAfterMs'
    | 'network'
    | 'prepaidTiers'
    | 'publicUrl'
    | 'rateLimit'
    | 'rateScope'
    | 'trustProxy'
  >
  registry: Registry
  networks: Networks
}

/**
 * Returns the installation's settings that are relevant for users of the panel, without endpoint
 * URLs and secrets.
 */
export const readSettings = panelEndpoint({
  method: 'GET',
  path: `${WORKSPACE}/settings`,
  summary: 'List the settings',
  needs: 'viewer',
  params: z.strictObject(workspaceParams),
  response: z.object({
    settings: z.array(
      z.object({
        name: z
          .string()
          .meta({ description: 'Environment variable, or path in custody.config.json' }),
        value: z.string(),
        says: z.string().meta({ description: 'Description of the setting, one sentence' }),
      }),
    ),
    networks: z.array(
      z.object({
        network: z.string(),
        name: z.string(),
        confirmations: z.int().nullable(),
        fee_cap: z.number(),
        native_asset: z.string(),
      }),
    ),
  }),
  async handler(_context, { settings, networks, registry }: Services) {
    const shown: [name: string, value: string, says: string][] = [
      [
        'CUSTODY_NETWORK',
        settings.network,
        byMode(settings.network, {
          local: 'Local chains with test coins only',
          regtest: 'A rehearsal on private chains, without real coins',
          mainnet: 'The real networks',
        }),
      ],
      [
        'CUSTODY_PUBLIC_URL',
        settings.publicUrl ?? 'not set',
        'Public address at which people and payers reach this server',
      ],
      [
        'CUSTODY_RATE_LIMIT',
        String(settings.rateLimit),
        'Requests per minute of an API key that has no limit of its own',
      ],
      [
        'CUSTODY_RATE_SCOPE',
        settings.rateScope,
        'Whether the limit applies to a key, or to each endpoint of a key',
      ],
      [
        'CUSTODY_TRUST_PROXY',
        String(settings.trustProxy),
        'Reverse proxies whose forwarded client address is trusted',
      ],
      [
        'CUSTODY_AUTH_LEGACY',
        settings.authLegacy ? '1' : '0',
        'Whether older forms of a signed request are accepted',
      ],
      [
        'CUSTODY_FEE_BUMP_AFTER_S',
        String(settings.feeBumpAfterMs / 1000),
        'Seconds after which the fee of a waiting transfer is increased; 0: never',
      ],
      [
        'CUSTODY_PREPAID_TIERS',
        settings.prepaidTiers
          .map(
            (tier) =>
              `${tier.name}: ${Number(tier.basisPoints) / 100} %, at least ${showUsd(tier.least)} USD`,
          )
          .join('; '),
        'Platform fees by the volume of 30 days',
      ],
    ]
    return {
      body: {
        settings: shown.map(([name, value, says]) => ({ name, value, says })),
        networks: networks.all().map(({ network }) => ({
          network: network.code,
          name: network.name,
          confirmations: network.confirmations,
          fee_cap: exact(
            formatAmount(
              BigInt(network.fee_cap),
              registry.asset(network.native_asset)?.decimals ?? 0,
            ),
          ),
          native_asset: network.native_asset,
        })),
      },
    }
  },
})
