import { formatAmount } from '@custody/chains'
import { z } from 'zod'
import { NAME_MAX } from '../../core/bounds.ts'
import { exact, exactUsd } from '../../core/decimals.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import {
  CONFIRMATIONS_MAX,
  DEPTHS_MAX,
  EXPIRES_IN_S,
  FROM_USD_MAX,
  ORIGINS_MAX,
  TOLERANCE_PERCENT,
} from './body.ts'
import { TOLERANCE_DECIMALS } from './present.ts'
import { readInvoiceSettings, type InvoiceSettings } from './settings.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

export const settingsShape = z
  .object({
    display_name: z.string().max(NAME_MAX).nullable(),
    allowed_origins: z.array(z.string().max(NAME_MAX)).max(ORIGINS_MAX),
    confirmations: z
      .array(
        z.object({
          from_usd: z.number().min(0).max(FROM_USD_MAX),
          confirmations: z.int().min(0).max(CONFIRMATIONS_MAX),
        }),
      )
      .max(DEPTHS_MAX),
    tolerance: z.number().min(0).max(TOLERANCE_PERCENT.most),
    expires_in: z.int().min(EXPIRES_IN_S.least).max(EXPIRES_IN_S.most),
  })
  .meta({ id: 'InvoiceSettings' })

export const presentSettings = ({
  displayName,
  allowedOrigins,
  depths,
  tolerance,
  expiresInS,
}: InvoiceSettings) => ({
  display_name: displayName,
  allowed_origins: allowedOrigins,
  confirmations: depths.map(({ fromUsd, confirmations }) => ({
    from_usd: exactUsd(fromUsd),
    confirmations,
  })),
  tolerance: exact(formatAmount(BigInt(tolerance), TOLERANCE_DECIMALS)),
  expires_in: expiresInS,
})

/** Returns the settings for the workspace's new invoices. */
export const getInvoiceSettings = endpoint({
  id: 'readInvoiceSettings',
  tag: 'Invoices',
  description: 'Returns the defaults for invoices of the sub-account.',
  method: 'GET',
  path: '/dac/v1/invoice-settings',
  summary: 'Read the invoice settings',
  access: 'read',
  response: settingsShape,
  async handler({ caller }, services: Services) {
    return {
      body: presentSettings(await readInvoiceSettings(services.database, caller.workspaceId)),
    }
  },
})
