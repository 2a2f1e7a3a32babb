import { z } from 'zod'
import { optional, positive, sequenceId } from '@custody/request-auth/bodies'
import {
  assetName,
  decimal,
  oneOf,
  text,
  textSchema,
  wholeNumber,
} from '../../core/http/schemas.ts'
import { FIATS } from './quote.ts'

const URL_MAX = 2000
export const OFFERS_MAX = 50
/**
 * Maximum number of entries in the settings: origins that may embed the checkout, depths by value,
 * and blocks of one depth.
 */
export const ORIGINS_MAX = 50
export const DEPTHS_MAX = 20
export const CONFIRMATIONS_MAX = 10_000
/** Largest value, in USD, from which a depth applies. */
export const FROM_USD_MAX = 1e21
/** Lifetime of an invoice, in seconds. Short lifetimes are for tests on local chains. */
export const EXPIRES_IN_S = { least: 5, leastReal: 60, usual: 1800, most: 30 * 86_400 }
/** Percentage by which a payment may be too low: the default and the maximum. */
export const TOLERANCE_PERCENT = { usual: '0.5', most: 10 }

/**
 * The ID of an invoice in a path. An ID in another format does not exist, so the response is 404.
 */
export const pathInvoiceId = z.string().meta({
  minLength: 36,
  maxLength: 36,
  pattern: '^inv_[0-9a-f]{32}$',
  examples: ['inv_7c9e6679742540de944be07fc1f90ae7'],
})

/** Pattern of an http or https URL without control characters. */
const WEB_URL = String.raw`^[hH][tT][tT][pP][sS]?:[^\u0000-\u001f\u007f]*$`

/**
 * URL to which a payer or an event is sent. Only http(s) is allowed, because the checkout renders
 * it as a link.
 */
const webUrl = (description: string) =>
  text(URL_MAX)
    .refine((value) => {
      const url = URL.canParse(value) ? new URL(value) : null
      return (
        url !== null &&
        (url.protocol === 'https:' || url.protocol === 'http:') &&
        url.username === '' &&
        url.password === ''
      )
    }, 'must be an http(s) URL without user and password')
    .meta({ ...textSchema(URL_MAX), pattern: WEB_URL, format: 'uri', description })

/**
 * A tolerance as text: at most ten, with at most four significant decimals. Exponents are accepted,
 * but not documented.
 */
const TOLERANCE_TEXT = /^0*(\d(\.\d{1,4}0*)?|10(\.0+)?)$/
const TOLERANCE = `0 to ${TOLERANCE_PERCENT.most}, four decimals`

const isTolerance = (value: string): boolean => Number(value) <= TOLERANCE_PERCENT.most

export const toleranceField = decimal
  .refine(isTolerance, `must be at most ${TOLERANCE_PERCENT.most} percent`)
  .meta({
    anyOf: [
      { type: 'number', minimum: 0, maximum: TOLERANCE_PERCENT.most, multipleOf: 0.0001 },
      { type: 'string', pattern: TOLERANCE_TEXT.source, maxLength: 100 },
    ],
    description: `Permitted underpayment in percent of the amount; ${TOLERANCE}`,
  })

export const expiresInField = wholeNumber(
  EXPIRES_IN_S.least,
  EXPIRES_IN_S.most,
  `Seconds until the invoice expires; at least ${EXPIRES_IN_S.leastReal} on real networks`,
)

/** Body of POST /dac/v1/invoices. */
export const invoiceBody = z.strictObject({
  fiat: optional(oneOf(FIATS, 'Currency of `fiat_amount`')),
  fiat_amount: optional(positive).meta({
    description: 'Amount due, in the currency `fiat`; at most six decimals',
  }),
  asset: optional(assetName).meta({
    description: 'Asset in which `amount` is denominated, instead of a currency',
  }),
  amount: optional(positive),
  assets: optional(z.array(assetName).min(1).max(OFFERS_MAX)).meta({
    description:
      'Assets that the payer can select; by default every asset with an active wallet in the sub-account, or only `asset`',
  }),
  memo: optional(text(1000)).meta({ description: 'Displayed to the payer' }),
  order_id: optional(text(200)).meta({
    description: 'Your order number; displayed to the payer',
  }),
  payer: optional(
    z.strictObject(
      { email: optional(text(320)), name: optional(text(200)) },
      'must be an object with email and name',
    ),
  ),
  webhook_url: optional(
    webUrl(
      'URL that receives this invoice’s events, in addition to the webhooks of the sub-account',
    ),
  ),
  success_url: optional(webUrl('URL to which the checkout redirects a payer who has paid')),
  failed_url: optional(webUrl('URL to which the checkout redirects a payer who has not paid')),
  expires_in: optional(expiresInField),
  tolerance: optional(toleranceField),
  sequence_id: optional(sequenceId).meta({
    description: 'Idempotency key, unique within the sub-account',
  }),
})

/** Parsed form of {@link invoiceBody}. */
export type InvoiceBody = z.output<typeof invoiceBody>
