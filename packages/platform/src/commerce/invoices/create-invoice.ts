import { stringifyJson } from '@custody/request-auth'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { UNREADABLE_PAYLOAD } from '../../core/engine/payload.ts'
import { hashRequest } from '../../core/http/idempotency/payload.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import type { Prices } from '../../custody/prices/prices.ts'
import { endpoint, type Caller, type Reply } from '../../core/http/endpoint.ts'
import { answeredTo, sequenceIdIn, onceOnly } from '../../core/http/replay.ts'
import { invoiceBody, type InvoiceBody } from './body.ts'
import { placeFor, readyFor } from './choose.ts'
import { newInvoiceId, type Invoice, type InvoiceRow, type OfferRow } from './invoice.ts'
import { publishInvoiceEvent } from './evaluate-invoice.ts'
import { offersOf, requestedAmount, type Offered } from './offer.ts'
import { invoiceShape, presentInvoice, type Checkout } from './present.ts'
import { microOf } from './quote.ts'
import { depthFor, readInvoiceSettings, readLife, readTolerance } from './settings.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated' | 'network'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  hold: DatabaseHold
  prices: Prices
  checkout: Checkout
}

/** Creates an invoice with fixed rates; at most one per sub-account and `sequence_id`. */
export const createInvoice = endpoint({
  id: 'createInvoice',
  tag: 'Invoices',
  description:
    'Requests an amount in fiat or in an asset from a payer. Rates are locked until the invoice expires, and each selected asset gets its own address. Display `checkout_url`, or the address. Send a `sequence_id`: a repeated request then returns the same invoice.',
  errors: [
    'UNSUPPORTED_ASSET',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'INVALID_AMOUNT',
    'PRICE_UNAVAILABLE',
    'SIGNERS_UNAVAILABLE',
    'NETWORK_UNAVAILABLE',
    'ASSET_CLOSED',
  ],
  example: {
    fiat: 'USD',
    fiat_amount: 25.5,
    assets: ['BTC', 'ETH'],
    order_id: 'order-1001',
    sequence_id: 'order-1001',
  },
  method: 'POST',
  path: '/dac/v1/invoices',
  summary: 'Create an invoice',
  access: 'write',
  audit: { not: 'an invoice moves nothing, and shops create them in large numbers' },
  body: invoiceBody,
  response: invoiceShape,
  earlier: ({ caller, fields, body }, services: Pick<Services, 'database'>) =>
    answeredTo(
      services.database,
      'invoices',
      caller,
      sequenceIdIn(fields['sequence_id']),
      body ? hashAsked(body) : UNREADABLE_PAYLOAD,
    ),
  async handler({ caller, body }, services: Services) {
    const payloadHash = hashAsked(body)
    return onceOnly(
      () => answeredTo(services.database, 'invoices', caller, body.sequence_id, payloadHash),
      () => create(services, caller, body, payloadHash),
    )
  },
})

/** Returns the hash of the fields of an invoice request, without the payer's data. */
const hashAsked = ({ payer, ...body }: InvoiceBody): string =>
  hashRequest({ ...body, payer_email: payer?.email, payer_name: payer?.name })

async function create(
  services: Services,
  caller: Caller,
  body: InvoiceBody,
  payloadHash: string,
): Promise<Reply> {
  if (body.webhook_url !== undefined)
    services.checkout.checkWebhook(body.webhook_url, 'webhook_url')
  const request = requestedAmount(services, body)
  const offers = await offersOf(services, caller, body, request)
  const settings = await readInvoiceSettings(services.database, caller.workspaceId)
  const tolerance =
    body.tolerance === undefined ? settings.tolerance : readTolerance(body.tolerance)
  const lifeS = readLife(services, body.expires_in) ?? settings.expiresInS
  const now = new Date(services.environment.now())
  const row = newRow({
    id: newInvoiceId(services),
    caller,
    body,
    fiat: request.fiat,
    tolerance,
    createdAt: now,
    expiresAt: new Date(now.getTime() + lifeS * 1000),
  })
  const confirmations = depthFor(settings.depths, request.value && microOf(request.value))
  const rows = offers.map(({ asset, network, amount, rate }): OfferRow => ({
    asset: asset.asset_name,
    network: network.code,
    amount: amount.toString(),
    rate: rate?.price.toString() ?? null,
    rate_at: rate && new Date(rate.at),
    confirmations,
    address: null,
    address_tag: null,
    path: null,
    chosen_at: null,
  }))
  // If only one asset is offered, it is chosen for the payer.
  const only = offers.length === 1 ? (offers[0] as Offered) : null
  if (only)
    await readyFor(services, caller, only, only.amount, request.fiat ? 'fiat_amount' : 'amount')
  const response = await services.database.transaction(async (tx) => {
    const place = only && (await placeFor(services, tx, caller, only, row.id))
    const invoice: Invoice = {
      row: { ...row, selected: only?.asset.asset_name ?? null },
      offers: place
        ? rows.map((offer) => ({
            ...offer,
            address: place.address,
            address_tag: place.address_tag,
            path: place.path,
            chosen_at: now,
          }))
        : rows,
      payments: [],
      refunds: [],
    }
    const text = stringifyJson(presentInvoice(services, invoice))
    await insertInvoice(tx, invoice, { text, payloadHash, walletId: place?.wallet_id ?? null })
    await publishInvoiceEvent(services, tx, invoice, 'invoice.created')
    return text
  })
  services.environment.checkpoint('invoice.created')
  return { text: response }
}

/** Returns the row of a new invoice, for which no asset is selected yet. */
function newRow({
  id,
  caller,
  body,
  fiat,
  tolerance,
  createdAt,
  expiresAt,
}: {
  id: string
  caller: Caller
  body: InvoiceBody
  fiat: ReturnType<typeof requestedAmount>['fiat']
  tolerance: number
  createdAt: Date
  expiresAt: Date
}): InvoiceRow {
  return {
    id,
    workspace_id: caller.workspaceId,
    sub_account_id: caller.subAccountId,
    status: 'Pending',
    exception: null,
    fiat: fiat?.currency ?? null,
    fiat_amount: fiat?.amount.toString() ?? null,
    memo: body.memo ?? null,
    order_id: body.order_id ?? null,
    payer: body.payer ?? null,
    webhook_url: body.webhook_url ?? null,
    success_url: body.success_url ?? null,
    failed_url: body.failed_url ?? null,
    tolerance,
    selected: null,
    cancelled_at: null,
    marked: null,
    marked_reason: null,
    marked_at: null,
    version: 1,
    sequence_id: body.sequence_id ?? null,
    expires_at: expiresAt,
    created_at: createdAt,
    updated_at: createdAt,
  }
}

/** Inserts a new invoice with its offers and the response to the request that created it. */
async function insertInvoice(
  tx: Queryable,
  { row, offers }: Invoice,
  { text, payloadHash, walletId }: { text: string; payloadHash: string; walletId: string | null },
): Promise<void> {
  await tx.query(
    `insert into invoices (id, workspace_id, sub_account_id, fiat, fiat_amount, memo, order_id,
       payer, webhook_url, success_url,
       failed_url, tolerance, selected, due_at, sequence_id, payload_hash, response, expires_at,
         created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $14, $18,
       $18)`,
    [
      row.id,
      row.workspace_id,
      row.sub_account_id,
      row.fiat,
      row.fiat_amount,
      row.memo,
      row.order_id,
      row.payer,
      row.webhook_url,
      row.success_url,
      row.failed_url,
      row.tolerance,
      row.selected,
      row.expires_at,
      row.sequence_id,
      payloadHash,
      text,
      row.created_at,
    ],
  )
  await tx.query(
    `insert into invoice_offers (workspace_id, invoice_id, asset, network, position, amount, rate,
       rate_at, confirmations, wallet_id,
       address, address_tag, path, chosen_at)
     select $4, $1, o.asset, o.network, o.n, o.amount, o.rate, o.rate_at, o.confirmations, $3,
       o.address, o.address_tag, o.path,
       o.chosen_at
     from jsonb_to_recordset($2) as o(asset text, network text, n integer, amount numeric,
       rate numeric, rate_at timestamptz,
       confirmations integer, address text, address_tag text, path integer[],
         chosen_at timestamptz)`,
    [
      row.id,
      JSON.stringify(offers.map((offer, n) => ({ ...offer, n }))),
      walletId,
      row.workspace_id,
    ],
  )
}
