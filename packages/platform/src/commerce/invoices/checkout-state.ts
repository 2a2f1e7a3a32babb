import { formatAmount, type Registry } from '@custody/chains'
import { z } from 'zod'
import {
  ADDRESS_MAX,
  HASH_MAX,
  ID_MAX,
  INT_MAX,
  LIST_MAX,
  MEMO_MAX,
  NAME_MAX,
  TIME_MAX,
  URL_MAX,
  WORD_MAX,
} from '../../core/bounds.ts'
import { showUsd } from '../../core/decimals.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { OFFERS_MAX, pathInvoiceId } from './body.ts'
import { EXCEPTIONS, INVOICE_STATUSES, PAYMENT_STATUSES } from './evaluate.ts'
import { noInvoice, readInvoice, type Invoice, type OfferRow } from './invoice.ts'
import { explorerUrl, placeOf, stillDue, tagsOf, uriOf } from './present.ts'
import { showRate } from './quote.ts'
import { readInvoiceSettings } from './settings.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
}

const amount = z
  .string()
  .max(WORD_MAX)
  .meta({ description: 'Exact decimal as a string, because browsers parse numbers as doubles' })
const coin = {
  asset: z.string().max(WORD_MAX),
  ticker: z.string().max(WORD_MAX),
  name: z.string().max(NAME_MAX),
  network: z.string().max(WORD_MAX),
  network_name: z.string().max(NAME_MAX),
}

/** The payer's view of an invoice. The merchant is the only party that it identifies. */
export const checkoutShape = z
  .object({
    inv_id: z.string().max(ID_MAX),
    inv_status: z.enum(INVOICE_STATUSES),
    exception: z.enum(EXCEPTIONS).nullable(),
    merchant: z.string().max(NAME_MAX),
    memo: z.string().max(MEMO_MAX).nullable(),
    order_id: z.string().max(NAME_MAX).nullable(),
    fiat: z.string().max(WORD_MAX).nullable(),
    fiat_amount: amount.nullable(),
    created_at: z.string(),
    expiry: z.string().max(TIME_MAX),
    now: z
      .string()
      .max(TIME_MAX)
      .meta({ description: 'The platform’s current time, for a countdown' }),
    assets: z
      .array(
        z.object({
          ...coin,
          takes_tag: z.boolean(),
          requires_tag: z.boolean(),
          crypto_amount: amount,
        }),
      )
      .max(OFFERS_MAX),
    selected: z
      .object({
        ...coin,
        address: z.string().max(ADDRESS_MAX),
        address_tag: z.string().max(NAME_MAX).nullable(),
        tag_name: z.string().max(NAME_MAX).nullable(),
        crypto_amount: amount,
        paid_amount: amount,
        due_amount: amount,
        payment_uri: z.string().max(URL_MAX).nullable(),
        rate: amount.nullable(),
        rate_at: z.string().nullable(),
      })
      .nullable(),
    payments: z
      .array(
        z.object({
          hash: z.string().max(HASH_MAX).nullable(),
          asset: z.string().max(WORD_MAX),
          ticker: z.string().max(WORD_MAX),
          amount,
          status: z.enum(PAYMENT_STATUSES),
          confirmations: z.int().min(0).max(INT_MAX),
          required: z.int().min(0).max(INT_MAX),
          counts: z.boolean(),
          seen_at: z.string(),
          explorer_url: z.string().max(URL_MAX).nullable(),
        }),
      )
      .max(LIST_MAX),
    success_url: z.string().max(URL_MAX).nullable(),
    failed_url: z.string().max(URL_MAX).nullable(),
    cancelled: z.boolean(),
  })
  .meta({ id: 'Checkout' })
export type CheckoutState = z.output<typeof checkoutShape>

/**
 * Returns a network's name for tags. A network whose endpoint was removed from the configuration
 * may still have invoices.
 */
const tagNameOf = ({ networks }: Services, code: string): string =>
  (networks.has(code) ? networks.get(code).tagName : undefined) ?? 'tag'

/** Returns the name that the payer sees: the configured one, or the workspace's. */
async function merchantOf({ database }: Services, workspaceId: string): Promise<string> {
  const { displayName } = await readInvoiceSettings(database, workspaceId)
  return (
    displayName ??
    (
      await database.one<{ name: string }>('select name from workspaces where id = $1', [
        workspaceId,
      ])
    )?.name ??
    ''
  )
}

/** Returns the current state of an invoice for its payer. */
export async function checkoutState(services: Services, invoice: Invoice): Promise<CheckoutState> {
  const { row, offers, payments } = invoice
  const merchant = await merchantOf(services, row.workspace_id)
  const show = (name: string, value: bigint) =>
    formatAmount(value, services.registry.asset(name)?.decimals ?? 0)
  const coinOf = (name: string) => {
    const { asset, network } = placeOf(services, name)
    return {
      asset: name,
      ticker: asset.ticker,
      name: asset.name,
      network: network.code,
      network_name: network.name,
    }
  }
  const selectedOf = (offer: OfferRow & { address: string }) => {
    const { paid, due } = stillDue(invoice, offer)
    return {
      ...coinOf(offer.asset),
      address: offer.address,
      address_tag: offer.address_tag,
      tag_name: offer.address_tag === null ? null : tagNameOf(services, offer.network),
      crypto_amount: show(offer.asset, BigInt(offer.amount)),
      paid_amount: show(offer.asset, paid),
      due_amount: show(offer.asset, due),
      payment_uri: uriOf(services, invoice, offer),
      rate: offer.rate === null ? null : showRate(BigInt(offer.rate)),
      rate_at: offer.rate_at?.toISOString() ?? null,
    }
  }
  const chosen = offers.find(
    (offer): offer is OfferRow & { address: string } =>
      offer.asset === row.selected && offer.address !== null,
  )
  return {
    inv_id: row.id,
    inv_status: row.status,
    exception: row.exception,
    merchant,
    memo: row.memo,
    order_id: row.order_id,
    fiat: row.fiat,
    fiat_amount: row.fiat_amount === null ? null : showUsd(BigInt(row.fiat_amount)),
    created_at: row.created_at.toISOString(),
    expiry: row.expires_at.toISOString(),
    now: new Date(services.environment.now()).toISOString(),
    assets: offers.map((offer) => ({
      ...coinOf(offer.asset),
      ...tagsOf(services, offer.asset),
      crypto_amount: show(offer.asset, BigInt(offer.amount)),
    })),
    selected: chosen ? selectedOf(chosen) : null,
    payments: payments.slice(0, LIST_MAX).map((each) => ({
      hash: each.hash,
      asset: each.asset,
      ticker: services.registry.asset(each.asset)?.ticker ?? each.asset,
      amount: show(each.asset, BigInt(each.amount)),
      status: each.status,
      confirmations: each.confirmations,
      required: each.required,
      counts: each.counts,
      seen_at: each.seen_at.toISOString(),
      explorer_url: explorerUrl(services, each),
    })),
    success_url: row.success_url,
    failed_url: row.failed_url,
    cancelled: row.cancelled_at !== null,
  }
}

export const invoiceParams = z.strictObject({ inv_id: pathInvoiceId })

/** Returns the data of the checkout. Access requires only the ID. */
export const readCheckout = endpoint({
  id: 'readCheckout',
  tag: 'Checkout',
  description:
    'Returns what the payment page displays. The id is the secret: anyone who has the link can read it. Requires no API key.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/checkout/{inv_id}/state',
  summary: 'Read an invoice’s state as its payer',
  access: 'public',
  params: invoiceParams,
  response: checkoutShape,
  async handler({ params: { inv_id } }, services: Services) {
    const invoice = await readInvoice(services, services.database, inv_id)
    if (!invoice) throw noInvoice(inv_id)
    return { body: await checkoutState(services, invoice) }
  },
})
