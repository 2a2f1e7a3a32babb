import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Published } from '../events/publish.ts'
import { makeSecret, type WebhookRow } from './webhook.ts'

interface Services {
  environment: Environment
  log: Logger
  aml: Aml
}

/** Maximum number of servers that receive the invoice events of one sub-account. */
const ORIGINS_MAX = 100

/** An event of an invoice that has its own `webhook_url`. */
interface Addressed {
  event: Published
  subAccountId: string
  url: string
  origin: string
}

/** The webhook for a server to which invoices send their events. */
export type InvoiceReceiver = Pick<WebhookRow, 'id' | 'format' | 'disabled_at'>

function addressOf(event: Published): Addressed[] {
  if (!event.type.startsWith('invoice.') || event.subAccountId === null) return []
  const { webhook_url: url } = JSON.parse(event.payload) as { webhook_url?: unknown }
  return typeof url === 'string' && URL.canParse(url)
    ? [{ event, subAccountId: event.subAccountId, url, origin: new URL(url).origin }]
    : []
}

const keyOf = (subAccount: string, origin: string): string => `${subAccount} ${origin}`

/**
 * Returns the receivers of events of invoices with a `webhook_url`. The sub-account has one webhook
 * for each server, which is created here when it is first needed; it has a queue, a secret and a
 * failure count like every other webhook. Its deliveries contain the URL.
 */
export async function invoiceReceivers(
  services: Services,
  tx: Queryable,
  events: readonly Published[],
): Promise<{ event: Published; receiver: InvoiceReceiver; url: string }[]> {
  const addressed = events.flatMap(addressOf)
  if (addressed.length === 0) return []
  const existing = await readReceivers(tx, addressed)
  for (const one of addressed) {
    const key = keyOf(one.subAccountId, one.origin)
    if (!existing.has(key)) existing.set(key, await makeReceiver(services, tx, one))
  }
  return addressed.flatMap(({ event, subAccountId, origin, url }) => {
    const receiver = existing.get(keyOf(subAccountId, origin))
    return receiver && receiver.disabled_at === null ? [{ event, receiver, url }] : []
  })
}

async function readReceivers(
  tx: Queryable,
  addressed: readonly Addressed[],
): Promise<Map<string, InvoiceReceiver | null>> {
  const rows = await tx.query<InvoiceReceiver & { sub_account_id: string; invoice_origin: string }>(
    `select id, format, disabled_at, sub_account_id, invoice_origin from webhooks
     where workspace_id = any($3) and sub_account_id = any($1)
       and invoice_origin = any($2) for key share`,
    [
      [...new Set(addressed.map(({ subAccountId }) => subAccountId))],
      [...new Set(addressed.map(({ origin }) => origin))],
      [...new Set(addressed.map(({ event }) => event.workspaceId))],
    ],
  )
  return new Map(rows.map((row) => [keyOf(row.sub_account_id, row.invoice_origin), row]))
}

async function makeReceiver(
  services: Services,
  tx: Queryable,
  { event, subAccountId, origin }: Addressed,
): Promise<InvoiceReceiver | null> {
  const { count } = (await tx.one<{ count: string }>(
    `select count(*)::text count from webhooks where workspace_id = $2 and sub_account_id = $1
      and invoice_origin is not null`,
    [subAccountId, event.workspaceId],
  )) as { count: string }
  if (Number(count) >= ORIGINS_MAX) {
    const where = { sub_account: subAccountId, origin }
    services.log.warn(
      where,
      `the invoices of a sub-account already use ${ORIGINS_MAX} servers for events; no events are sent to this server`,
    )
    return null
  }
  const id = services.environment.uuid()
  const { sealed } = makeSecret(services, id)
  return (await tx.one<InvoiceReceiver>(
    `insert into webhooks (id, workspace_id, sub_account_id, url, events, description, format,
       sealed_secret, secret_made_at,
       invoice_origin, created_at, updated_at)
     values ($1, $2, $3, $4, '{invoice.*}', 'webhook_url of invoices', 'standard', $5, $6, $4, $6,
       $6)
     returning id, format, disabled_at`,
    [id, event.workspaceId, subAccountId, origin, sealed, tx.now()],
  )) as InvoiceReceiver
}
