import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import {
  bestConversion,
  conversionBody,
  conversionShape,
  insertConversion,
  presentConversion,
} from './conversion.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Venues } from '../exchanges/venues.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  exchanges: Venues
}

/**
 * Returns the best current conversion of an amount among the linked accounts, valid for some
 * seconds.
 */
export const quoteConversion = endpoint({
  id: 'quoteConversion',
  tag: 'Trading',
  description:
    'Returns the result of a conversion at the best linked account now, and until when `quote` is valid.',
  errors: [
    'NOT_FOUND',
    'INVALID_AMOUNT',
    'CONVERSION_UNAVAILABLE',
    'PRICE_UNAVAILABLE',
    'EXCHANGE_ACCOUNT_LINKED',
    'EXCHANGE_KEY_REFUSED',
    'EXCHANGE_UNAVAILABLE',
    'EXCHANGE_UNSUPPORTED',
  ],
  method: 'POST',
  path: '/dac/v1/conversions/quote',
  summary: 'Quote a conversion',
  access: 'write',
  audit: { not: 'a quote changes nothing' },
  heavy: { kind: 'exchange query', weight: 5, waiting: 0 },
  body: z.strictObject(conversionBody),
  response: conversionShape,
  async handler({ caller, body }, services: Services) {
    const row = await bestConversion(services, caller, body)
    await insertConversion(services.database, caller, row, null)
    return { body: presentConversion(row, null, services.environment.now()) }
  },
})
