import { formatAmount, paymentUri, type Asset, type Network, type Registry } from '@custody/chains'
import { z } from 'zod'
import { pathShape } from '../../custody/addresses/present.ts'
import {
  ADDRESS_MAX,
  ASSETS_MAX,
  EMAIL_MAX,
  HASH_MAX,
  ID_MAX,
  INT_MAX,
  LIST_MAX,
  MEMO_MAX,
  MESSAGE_MAX,
  NAME_MAX,
  URL_MAX,
  WORD_MAX,
} from '../../core/bounds.ts'
import { exact, exactUsd } from '../../core/decimals.ts'
import type { Notifier } from '../../core/ledger/notifier.ts'
import { OFFERS_MAX, TOLERANCE_PERCENT } from './body.ts'
import {
  EXCEPTIONS,
  INVOICE_STATUSES,
  partOf,
  PAYMENT_STATUSES,
  shareOf,
  stands,
} from './evaluate.ts'
import { paymentsOf, termsOf, type Invoice, type OfferRow, type PaymentRow } from './invoice.ts'
import { showRate } from './quote.ts'

interface Services {
  registry: Registry
  checkout: Checkout
}

const coins = z.number().meta({ description: 'Exact decimal in the asset’s native unit' })
const time = z.string().meta({ format: 'date-time' })

const paymentShape = z
  .object({
    transaction_id: z
      .string()
      .max(ID_MAX)
      .nullable()
      .meta({ description: 'Null until the payment is in a block' }),
    hash: z
      .string()
      .max(HASH_MAX)
      .nullable()
      .meta({ description: 'Null if a contract paid, so that no transaction lists the payment' }),
    asset: z.string().max(WORD_MAX),
    amount: coins,
    status: z.enum(PAYMENT_STATUSES),
    confirmations: z.int().min(0).max(INT_MAX),
    required: z.int().min(0).max(INT_MAX),
    counts: z.boolean().meta({
      description:
        'False: paid in an asset that was not offered; it does not count towards the invoice',
    }),
    note: z.enum(['other_asset', 'late']).nullable(),
    seen_at: time,
    explorer_url: z.string().max(URL_MAX).nullable(),
  })
  .meta({ id: 'InvoicePayment' })

export const invoiceShape = z
  .object({
    inv_id: z.string().max(ID_MAX),
    inv_status: z.enum(INVOICE_STATUSES),
    exception: z.enum(EXCEPTIONS).nullable(),
    fiat: z.string().max(WORD_MAX).nullable(),
    fiat_amount: z.number().nullable(),
    asset: z.string().max(WORD_MAX).nullable().meta({
      description: 'The asset that was selected last; null: the payer has not selected one',
    }),
    address: z.string().max(ADDRESS_MAX).nullable(),
    address_tag: z.string().max(NAME_MAX).nullable(),
    path: pathShape.nullable(),
    crypto_amount: coins.nullable(),
    paid_amount: coins.nullable(),
    due_amount: coins.nullable(),
    payment_uri: z.string().max(URL_MAX).nullable(),
    expiry: time,
    checkout_url: z.string().max(URL_MAX),
    assets: z
      .array(
        z.object({
          asset: z.string().max(WORD_MAX),
          network: z.string().max(WORD_MAX),
          takes_tag: z.boolean(),
          requires_tag: z.boolean(),
          crypto_amount: coins,
          rate: z.number().min(0).nullable(),
          rate_at: time.nullable(),
          address: z.string().max(ADDRESS_MAX).nullable(),
          address_tag: z.string().max(NAME_MAX).nullable(),
          path: pathShape.nullable(),
        }),
      )
      .max(OFFERS_MAX)
      .meta({
        description: 'Assets in which the invoice can be paid; amounts and rates never change',
      }),
    payments: z
      .array(paymentShape)
      .max(LIST_MAX)
      .meta({ description: `The first ${LIST_MAX}, oldest first` }),
    refunds: z
      .array(
        z.object({
          transaction_id: z.string().max(ID_MAX),
          asset: z.string().max(WORD_MAX),
          amount: coins,
          status: z.enum(['pending', 'confirmed', 'failed']),
          hash: z.string().max(HASH_MAX).nullable(),
        }),
      )
      .max(LIST_MAX)
      .meta({ description: `The latest ${LIST_MAX}` }),
    refundable: z
      .array(z.object({ asset: z.string().max(WORD_MAX), amount: coins }))
      .max(ASSETS_MAX)
      .meta({ description: 'Credited amount that has not been refunded' }),
    excess: z
      .array(z.object({ asset: z.string().max(WORD_MAX), amount: coins }))
      .max(ASSETS_MAX)
      .meta({
        description: 'The part of it that exceeds the invoice amount',
      }),
    memo: z.string().max(MEMO_MAX).nullable(),
    order_id: z.string().max(NAME_MAX).nullable(),
    payer: z
      .object({
        email: z.string().max(EMAIL_MAX).nullable(),
        name: z.string().max(NAME_MAX).nullable(),
      })
      .nullable(),
    webhook_url: z.string().max(URL_MAX).nullable(),
    success_url: z.string().max(URL_MAX).nullable(),
    failed_url: z.string().max(URL_MAX).nullable(),
    tolerance: z
      .number()
      .min(0)
      .max(TOLERANCE_PERCENT.most)
      .meta({ description: 'Permitted underpayment in percent of the amount' }),
    sequence_id: z.string().max(NAME_MAX).nullable(),
    version: z.int().min(0).meta({ description: 'Increases with every change' }),
    cancelled_at: time.nullable(),
    marked: z
      .object({
        status: z.enum(['settled', 'invalid']),
        reason: z.string().max(MESSAGE_MAX),
        at: time,
      })
      .nullable(),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Invoice' })

/** Number of decimals of a tolerance in percent; it is stored in millionths. */
export const TOLERANCE_DECIMALS = 4

export function placeOf(
  { registry }: Pick<Services, 'registry'>,
  name: string,
): { asset: Asset; network: Network } {
  const asset = registry.asset(name) as Asset
  return { asset, network: registry.networkOf(asset) }
}

const checkoutUrl = ({ checkout }: Services, id: string): string =>
  `${checkout.base}/checkout/${id}`

export const explorerUrl = (
  { registry }: Pick<Services, 'registry'>,
  { network, hash }: Pick<PaymentRow, 'network' | 'hash'>,
): string | null => {
  const base = registry.network(network)?.explorer_transaction_url
  return base === undefined || hash === null ? null : `${base}${hash}`
}

/**
 * Returns the paid and the missing amount of an offer, based on all counted payments to the
 * invoice's addresses. Smallest unit.
 */
export function stillDue(invoice: Invoice, offer: OfferRow): { paid: bigint; due: bigint } {
  const { offers } = termsOf(invoice)
  return partOf(
    BigInt(offer.amount),
    shareOf(
      offers,
      paymentsOf(invoice).filter(({ status }) => stands(status)),
    ),
  )
}

/** Returns the payment URI for a wallet: the whole amount, or the missing part. */
export function uriOf(
  services: Pick<Services, 'registry'>,
  invoice: Invoice,
  offer: OfferRow,
): string | null {
  if (offer.address === null) return null
  const { asset, network } = placeOf(services, offer.asset)
  const { due } = stillDue(invoice, offer)
  const amount = due > 0n ? due : BigInt(offer.amount)
  return paymentUri(network, asset, {
    address: offer.address,
    addressTag: offer.address_tag,
    amount,
  })
}

/** Returns the credited amount of each asset, less completed and pending refunds. Smallest unit. */
function refundable({ payments, refunds }: Invoice): Map<string, bigint> {
  const left = new Map<string, bigint>()
  const add = (asset: string, change: bigint) => left.set(asset, (left.get(asset) ?? 0n) + change)
  for (const { asset, amount: paid, status } of payments)
    if (status === 'confirmed') add(asset, BigInt(paid))
  for (const { asset, amount: input, status } of refunds)
    if (status !== 'failed') add(asset, -BigInt(input))
  return new Map([...left].filter(([, value]) => value > 0n))
}

/**
 * Returns the part of the refundable amounts that exceeds the whole amount; assets that were paid
 * last are refunded first.
 */
function excess(invoice: Invoice, left: Map<string, bigint>): Map<string, bigint> {
  const { offers } = termsOf(invoice)
  const matches = new Map([...left].filter(([asset]) => !offers.has(asset)))
  const settled = paymentsOf(invoice).filter(({ status }) => status === 'confirmed')
  const { numerator, denominator } = shareOf(offers, settled)
  const last = settled.findLast(({ asset }) => offers.has(asset))?.asset
  const most = last === undefined ? 0n : (left.get(last) ?? 0n)
  if (last === undefined || most === 0n || numerator <= denominator) return matches
  const input = invoice.refunds
    .filter(({ asset, status }) => asset === last && status !== 'failed')
    .reduce((sum, each) => sum + BigInt(each.amount), 0n)
  const over = ((numerator - denominator) * (offers.get(last) as bigint)) / denominator - input
  return over > 0n ? matches.set(last, over < most ? over : most) : matches
}

/**
 * Returns whether payments of an asset may have a tag, and whether its addresses always include
 * one.
 */
export function tagsOf(
  { registry }: Pick<Services, 'registry'>,
  name: string,
): { takes_tag: boolean; requires_tag: boolean } {
  const asset = registry.asset(name)
  return { takes_tag: asset?.takes_tag ?? false, requires_tag: asset?.requires_tag ?? false }
}

/** Returns an amount with exactly the digits of its asset. */
const exactAmount = ({ registry }: Services, asset: string, value: bigint) =>
  exact(formatAmount(value, registry.asset(asset)?.decimals ?? 0))

/** Returns the fields of the selected asset; all null if the payer has not selected one. */
function presentSelection(services: Services, invoice: Invoice) {
  const { row, offers } = invoice
  const chosen = offers.find(({ asset }) => asset === row.selected) ?? null
  const part = chosen && stillDue(invoice, chosen)
  return {
    asset: chosen?.asset ?? null,
    address: chosen?.address ?? null,
    address_tag: chosen?.address_tag ?? null,
    path: chosen?.path ?? null,
    crypto_amount: chosen && exactAmount(services, chosen.asset, BigInt(chosen.amount)),
    paid_amount: chosen && part && exactAmount(services, chosen.asset, part.paid),
    due_amount: chosen && part && exactAmount(services, chosen.asset, part.due),
    payment_uri: chosen && uriOf(services, invoice, chosen),
  }
}

/** Returns the API's representation of an offered asset. */
const presentOffer = (services: Services, offer: OfferRow) => ({
  asset: offer.asset,
  network: offer.network,
  ...tagsOf(services, offer.asset),
  crypto_amount: exactAmount(services, offer.asset, BigInt(offer.amount)),
  rate: offer.rate === null ? null : exact(showRate(BigInt(offer.rate))),
  rate_at: offer.rate_at?.toISOString() ?? null,
  address: offer.address,
  address_tag: offer.address_tag,
  path: offer.path,
})

/**
 * Returns the API's representation of a payment.
 * @param end time after which a payment is late, in Unix ms
 */
const presentPayment = (services: Services, payment: PaymentRow, end: number) => ({
  transaction_id: payment.transaction_id,
  hash: payment.hash,
  asset: payment.asset,
  amount: exactAmount(services, payment.asset, BigInt(payment.amount)),
  status: payment.status,
  confirmations: payment.confirmations,
  required: payment.required,
  counts: payment.counts,
  note: payment.counts ? (payment.since.getTime() >= end ? 'late' : null) : 'other_asset',
  seen_at: payment.seen_at.toISOString(),
  explorer_url: explorerUrl(services, payment),
})

/** Returns the API's representation of an invoice, for its merchant. */
export function presentInvoice(services: Services, invoice: Invoice) {
  const { row, offers, payments, refunds } = invoice
  const show = (asset: string, value: bigint) => exactAmount(services, asset, value)
  const amounts = (map: Map<string, bigint>) =>
    [...map].map(([asset, value]) => ({ asset, amount: show(asset, value) }))
  const end = Math.min(row.expires_at.getTime(), row.cancelled_at?.getTime() ?? Infinity)
  const left = refundable(invoice)
  return {
    inv_id: row.id,
    inv_status: row.status,
    exception: row.exception,
    fiat: row.fiat,
    fiat_amount: row.fiat_amount === null ? null : exactUsd(BigInt(row.fiat_amount)),
    ...presentSelection(services, invoice),
    expiry: row.expires_at.toISOString(),
    checkout_url: checkoutUrl(services, row.id),
    assets: offers.map((offer) => presentOffer(services, offer)),
    payments: payments.slice(0, LIST_MAX).map((payment) => presentPayment(services, payment, end)),
    refunds: refunds.slice(-LIST_MAX).map(({ transaction_id, asset, amount, status, hash }) => ({
      transaction_id,
      asset,
      amount: show(asset, BigInt(amount)),
      status,
      hash,
    })),
    refundable: amounts(left),
    excess: amounts(excess(invoice, left)),
    memo: row.memo,
    order_id: row.order_id,
    payer: row.payer && { email: row.payer.email ?? null, name: row.payer.name ?? null },
    webhook_url: row.webhook_url,
    success_url: row.success_url,
    failed_url: row.failed_url,
    tolerance: exact(formatAmount(BigInt(row.tolerance), TOLERANCE_DECIMALS)),
    sequence_id: row.sequence_id,
    version: row.version,
    cancelled_at: row.cancelled_at?.toISOString() ?? null,
    marked: row.marked && {
      status: row.marked,
      reason: row.marked_reason ?? '',
      at: (row.marked_at ?? row.updated_at).toISOString(),
    },
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

/** What the checkout needs of the server. */
export interface Checkout {
  /** URL of this server for payers, without a trailing slash. */
  base: string
  /** Notified when this process has emitted an event of a deposit. */
  moved: Notifier
  /**
   * Checks whether events may be sent to a URL.
   * @throws ApiError `INVALID_REQUEST` that names the field
   */
  checkWebhook(url: string, field: string): void
}
