import { formatAmount } from '@custody/chains'
import { z } from 'zod'
import { exact, showUsd } from '../decimals.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { WORKSPACE, workspaceParams } from './workspace.ts'

/**
 * Returns the installation's settings that are relevant for users of the panel, without endpoint
 * URLs and secrets.
 */
export const readSettings = panelEndpoint({
  method: 'GET',
  path: `${WORKSPACE}/settings`,
  summary: 'What is set',
  needs: 'viewer',
  params: z.strictObject(workspaceParams),
  response: z.object({
    settings: z.array(
      z.object({
        name: z.string().meta({ description: 'The variable, or the part of custody.config.json' }),
        value: z.string(),
        says: z.string().meta({ description: 'What it is, in a sentence' }),
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
  async handler({ services: { settings, networks, registry } }) {
    const shown: [name: string, value: string, says: string][] = [
      [
        'CUSTODY_NETWORK',
        settings.network,
        settings.network === 'local' ? 'Local chains: nothing here is money' : 'The real networks',
      ],
      [
        'CUSTODY_PUBLIC_URL',
        settings.publicUrl ?? 'not set',
        'Where people and payers reach this server',
      ],
      [
        'CUSTODY_RATE_LIMIT',
        String(settings.rateLimit),
        'Requests of an API key in a minute, where it has no allowance of its own',
      ],
      [
        'CUSTODY_RATE_SCOPE',
        settings.rateScope,
        'Whether that is for a key, or for each endpoint of it',
      ],
      [
        'CUSTODY_TRUST_PROXY',
        String(settings.trustProxy),
        'Proxies in front: where a client’s address is taken from',
      ],
      [
        'CUSTODY_AUTH_LEGACY',
        settings.authLegacy ? '1' : '0',
        'Whether older forms of a signed request are taken',
      ],
      [
        'CUSTODY_FEE_BUMP_AFTER_S',
        String(settings.feeBumpAfterMs / 1000),
        'Seconds after which a waiting transfer is bumped; 0: never',
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
