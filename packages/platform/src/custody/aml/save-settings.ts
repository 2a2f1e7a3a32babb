import { byMode } from '@custody/chains/mode'
import { z } from 'zod'
import { parseUsd } from '../../core/decimals.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { credential, decimal, text } from '../../core/http/schemas.ts'
import { LEVELS, PROVIDERS, readLevels, readProvider, type ProviderName } from './levels.ts'
import { sealToken, type AmlRow } from './policy.ts'
import { amlShape, presentAml, USD_MAX } from './present.ts'
import { ProviderError } from './providers/provider.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Logger } from 'pino'
import type { Aml } from './aml.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'aml'>
  environment: Environment
  database: Database
  log: Logger
  aml: Aml
}

/**
 * Checks that a provider can know the addresses of this installation.
 * @throws ApiError `INVALID_REQUEST` in a rehearsal, whose addresses are other people's on the real networks
 */
function assertKnowsAddresses(
  { network, aml }: Services['settings'],
  provider: ProviderName,
): void {
  const isKnown = byMode(network, { local: true, regtest: null, mainnet: true })
  if (isKnown ?? aml.urls[provider] !== null) return
  throw new ApiError(
    'INVALID_REQUEST',
    `provider: ${provider} knows only addresses of the real networks; in a rehearsal, the operator can set CUSTODY_AML_${provider}_URL to an emulator`,
    { field: 'provider' },
  )
}

const USD = /^\d{1,7}(\.\d{1,6})?$/

/**
 * Saves the screening settings of the caller's sub-account, once the provider has accepted the
 * token.
 */
export const saveAmlSettings = endpoint({
  id: 'saveAmlSettings',
  tag: 'AML screening',
  description:
    'Saves the provider, the token and the risk levels that are held, for the sub-account. The token is verified with the provider before it is saved, and is never returned.',
  errors: ['PROVIDER_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/aml',
  summary: 'Save the AML screening settings',
  access: 'write',
  audit: 'entry',
  body: z.strictObject({
    provider: text(40).meta({
      enum: [...PROVIDERS],
      description: 'Name of the provider, in any letter case',
    }),
    aml_token: credential(1000).meta({
      description: 'API key of the provider; for Elliptic: key:secret',
    }),
    aml_risk_levels: text(200).meta({
      pattern: `^(${LEVELS.join('|')})(, ?(${LEVELS.join('|')})){0,${LEVELS.length - 1}}$`,
      description: `The risk levels to hold, comma-separated: ${LEVELS.join(', ')}`,
      examples: ['SEVERE, HIGH'],
    }),
    aml_deposit: z.boolean(),
    aml_withdrawal: z.boolean(),
    aml_unknown_sender_usd: decimal
      .refine((text) => USD.test(text) && Number(text) <= USD_MAX, {
        error: `must be from 0 to ${USD_MAX} with at most six decimals`,
      })
      .meta({
        anyOf: [
          { type: 'number', minimum: 0, maximum: USD_MAX },
          { type: 'string', pattern: USD.source, maxLength: 14 },
        ],
        description:
          'Deposits worth less than so many USD are credited although not all of their senders are known; known senders are screened. Without it, or 0: all are held',
        examples: [50],
      })
      .optional(),
  }),
  response: amlShape,
  async handler({ caller, body }, services: Services) {
    const provider = readProvider(body.provider)
    assertKnowsAddresses(services.settings, provider)
    const levels = readLevels(body.aml_risk_levels)
    const unknownSenderUsd = parseUsd(body.aml_unknown_sender_usd ?? '0')
    const token = body.aml_token
    let accepted: boolean
    try {
      accepted = await services.aml.providers[provider].verifyToken(token)
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      services.log.warn({ provider, err: error.message }, 'an AML token could not be verified')
      throw new ApiError(
        'PROVIDER_UNAVAILABLE',
        `provider: the token could not be verified with ${provider}; nothing was saved, try again`,
        { field: 'provider' },
      )
    }
    if (!accepted)
      throw new ApiError('INVALID_REQUEST', `aml_token: was rejected by ${provider}`, {
        field: 'aml_token',
      })
    const row = await services.database.one<AmlRow>(
      `insert into aml_settings (sub_account_id, provider, sealed_token, risk_levels,
         screen_deposits, screen_withdrawals, updated_at,
         workspace_id, unknown_sender_usd)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       on conflict (workspace_id, sub_account_id) do update set
         provider = excluded.provider, sealed_token = excluded.sealed_token,
           risk_levels = excluded.risk_levels,
         screen_deposits = excluded.screen_deposits,
           screen_withdrawals = excluded.screen_withdrawals, updated_at = excluded.updated_at,
         unknown_sender_usd = excluded.unknown_sender_usd
       returning *`,
      [
        caller.subAccountId,
        provider,
        sealToken(services, caller.subAccountId, token),
        levels,
        body.aml_deposit,
        body.aml_withdrawal,
        new Date(services.environment.now()),
        caller.workspaceId,
        unknownSenderUsd.toString(),
      ],
    )
    // Transactions that wait for the provider are retried immediately with the new settings.
    await services.database.query(
      `update transactions set next_run_at = $2
       where workspace_id = $3 and sub_account_id = $1 and status = 'pending'
         and state = 'SCREENING' and lease_token is null
        and next_run_at is not null`,
      [caller.subAccountId, services.database.now(), caller.workspaceId],
    )
    return { body: presentAml(row as AmlRow, token) }
  },
})
