import { optional } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { parseUsd } from '../../core/decimals.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { decimal, text, wholeNumber } from '../../core/http/schemas.ts'
import {
  CONFIRMATIONS_MAX,
  DEPTHS_MAX,
  expiresInField,
  FROM_USD_MAX,
  ORIGINS_MAX,
  toleranceField,
} from './body.ts'
import { presentSettings, settingsShape } from './read-settings.ts'
import { readInvoiceSettings, readLife, readTolerance } from './settings.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
}

const USD_DIGITS_MAX = 30

const USD_TEXT = String.raw`^\d{1,20}(\.\d{1,6})?$`
const FROM_USD = {
  anyOf: [
    { type: 'number', minimum: 0, maximum: FROM_USD_MAX },
    { type: 'string', pattern: USD_TEXT, maxLength: USD_DIGITS_MAX },
  ],
  description: 'USD, at most six decimals',
}

const isOrigin = (value: string): boolean => {
  const url = URL.canParse(value) ? new URL(value) : null
  // An origin with a wildcard is rejected: no browser sends one, and a content security policy
  // would interpret it as every server.
  return (
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    url.origin === value &&
    !url.host.includes('*')
  )
}

/**
 * Replaces all settings for the workspace's new invoices. A missing setting is reset to the
 * installation's default.
 */
export const saveInvoiceSettings = endpoint({
  id: 'saveInvoiceSettings',
  tag: 'Invoices',
  description: 'Replaces all settings. An omitted field is reset to the installation’s default.',
  example: {
    display_name: 'Hats',
    confirmations: [{ from_usd: 500, confirmations: 6 }],
    expires_in: 900,
  },
  method: 'PUT',
  path: '/dac/v1/invoice-settings',
  summary: 'Save the invoice settings',
  access: 'write',
  audit: 'entry',
  body: z.strictObject({
    display_name: optional(text(100)).meta({
      description: 'Name displayed to payers; by default the workspace’s name',
    }),
    allowed_origins: optional(
      z
        .array(
          text(200).refine(
            isOrigin,
            'must be an origin such as https://shop.example, without a path',
          ),
        )
        .max(ORIGINS_MAX),
    ).meta({
      description: 'Origins of pages that may embed the checkout in a frame',
    }),
    confirmations: optional(
      z
        .array(
          z.strictObject({
            from_usd: decimal.meta(FROM_USD),
            confirmations: wholeNumber(
              0,
              CONFIRMATIONS_MAX,
              'Confirmations that a payment requires in addition to being credited',
            ),
          }),
        )
        .max(DEPTHS_MAX),
    ).meta({
      description:
        'Confirmations by the value of an invoice, with ascending from_usd; never fewer than the network’s depth',
    }),
    tolerance: optional(toleranceField),
    expires_in: optional(expiresInField),
  }),
  response: settingsShape,
  async handler({ caller, body }, services: Services) {
    const depths = (body.confirmations ?? []).map(({ from_usd, confirmations }) => ({
      from_usd: readUsd(from_usd),
      confirmations,
    }))
    if (depths.some(({ from_usd }, at) => at > 0 && from_usd <= (depths[at - 1]?.from_usd ?? 0n))) {
      throw new ApiError(
        'INVALID_REQUEST',
        'confirmations: from_usd must increase from one entry to the next',
        { field: 'confirmations' },
      )
    }
    await services.database.query(
      `insert into invoice_settings (workspace_id, display_name, allowed_origins, confirmations,
        tolerance, expires_in_s, updated_at)
       values ($1, $2, $3, $4, $5, $6, $7)
       on conflict (workspace_id) do update set display_name = excluded.display_name,
         allowed_origins = excluded.allowed_origins,
         confirmations = excluded.confirmations, tolerance = excluded.tolerance,
           expires_in_s = excluded.expires_in_s,
         updated_at = excluded.updated_at`,
      [
        caller.workspaceId,
        body.display_name ?? null,
        JSON.stringify([...new Set(body.allowed_origins ?? [])]),
        JSON.stringify(depths.map((each) => ({ ...each, from_usd: each.from_usd.toString() }))),
        body.tolerance === undefined ? null : readTolerance(body.tolerance),
        readLife(services, body.expires_in) ?? null,
        new Date(services.environment.now()),
      ],
    )
    return {
      body: presentSettings(await readInvoiceSettings(services.database, caller.workspaceId)),
    }
  },
})

function readUsd(input: string): bigint {
  const refused = (reason = 'from_usd must have at most six decimals') =>
    new ApiError('INVALID_REQUEST', `confirmations: ${reason}`, { field: 'confirmations' })
  if (input.length > USD_DIGITS_MAX) throw refused()
  if (Number(input) > FROM_USD_MAX) throw refused(`from_usd must be at most ${FROM_USD_MAX}`)
  try {
    return parseUsd(input)
  } catch {
    throw refused()
  }
}
