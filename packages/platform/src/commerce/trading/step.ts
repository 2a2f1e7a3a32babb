import { reasonOf } from '@custody/chains/reason'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from '../exchanges/venues.ts'
import { venueOf, type AccountRow } from '../exchanges/account.ts'
import { noteRefused } from '../exchanges/reconcile.ts'
import {
  VenueError,
  type OrderLookup,
  type OrderRef,
  type Venue,
  type VenueOrder,
} from '../exchanges/venue.ts'
import { settleOrderFee } from './fee.ts'
import { noteFills } from './fills.ts'
import { LeaseLost } from '../exchanges/lease.ts'
import { advanceOrder } from './lease.ts'
import type { OrderRow, OrderStatus } from './order.ts'

interface Services {
  settings: Pick<Settings, 'pollMs'>
  environment: Environment
  database: Database
  metrics: Metrics
  log: Logger
  aml: Aml
  exchanges: Venues
}

/**
 * Deadline for sending, in milliseconds. After it the order either exists at the exchange or will
 * never exist, so queries give a definite answer.
 */
const LEAVES_WITHIN_MS = 30_000
/**
 * Time in milliseconds after the order's creation within which a request that the exchange did not
 * accept (rate limit) is sent again.
 */
const TRY_AGAIN_MS = 60_000
/** Time in milliseconds after a lost response at which an alert is raised. */
const ALERT_MS = 120_000
/**
 * An order that is not filled completely must be reported as ended twice, at least this number of milliseconds
 * apart, because its last fill may be reported after its end.
 */
const SEEN_TWICE_MS = 1000
const REFUSED_WAIT_MS = 30_000
const ASK_MAX_MS = 60_000
const SECOND_MS = 1000
const MINUTE_MS = 60_000

/**
 * Executes one step of a leased order: it is sent once, and then queried until its end is certain.
 */
export async function stepOrder(services: Services, row: OrderRow): Promise<void> {
  try {
    const account = (await services.database.one<AccountRow>(
      'select * from exchange_accounts where id = $1',
      [row.account_id],
    )) as AccountRow
    if (row.state === 'NEW' && !isStale(services, row)) return await send(services, row, account)
    if (row.state === 'NEW')
      return await ask(services, await toAsking(services, row), await venueOf(services, account))
    const venue = await venueOf(services, account)
    // A worker that crashed in this state may have sent the order, so only the exchange knows the
    // outcome.
    const asking = row.state === 'SENDING' ? await toAsking(services, row) : row
    await ask(services, asking, venue)
  } catch (error) {
    if (error instanceof LeaseLost) return
    if (!(error instanceof VenueError)) throw error
    await waitFor(services, row, error)
  }
}

/**
 * Returns whether a new order was not processed in time: the platform was stopped, or this is an
 * older database and the order was sent after its backup. It is not sent now, because its price is
 * outdated; the exchange is queried instead.
 */
const isStale = (services: Services, row: OrderRow): boolean =>
  row.cancel_requested_at === null &&
  row.last_error === null &&
  services.environment.now() - row.created_at.getTime() > TRY_AGAIN_MS

const toAsking = (services: Services, row: OrderRow): Promise<OrderRow> =>
  services.database.transaction((tx) =>
    advanceOrder(tx, row, {
      state: 'ASKING',
      status: 'unknown',
      sent_at: row.sent_at ?? row.created_at,
      again: 'hold',
    }),
  )

/** Sends an order once. From the commit of SENDING on, its result is only queried. */
async function send(services: Services, row: OrderRow, account: AccountRow): Promise<void> {
  if (row.cancel_requested_at !== null) return end(services, row, 'cancelled', null)
  const now = services.environment.now()
  const isLate = now - row.created_at.getTime() > TRY_AGAIN_MS
  if (isLate && row.last_error !== null) return end(services, row, 'rejected', row.last_error)
  let venue: Venue
  try {
    venue = await venueOf(services, account)
  } catch (error) {
    if (!(error instanceof VenueError)) throw error
    await services.database.transaction((tx) =>
      advanceOrder(tx, row, { last_error: 'NOT_SENT', again: backOff(row) }),
    )
    return
  }
  // After this commit the order may exist at the exchange, whatever happens in this process.
  const sending = await services.database.transaction((tx) =>
    advanceOrder(tx, row, { state: 'SENDING', sent_at: new Date(now), again: 'hold' }),
  )
  services.environment.checkpoint('order.sending')
  const placed = await venue.place(
    {
      clientId: row.client_id,
      symbol: row.market,
      side: row.side,
      amount: BigInt(row.amount),
      price: BigInt(row.price),
      timeInForce: row.time_in_force,
      postOnly: row.post_only,
    },
    now + LEAVES_WITHIN_MS,
  )
  services.environment.checkpoint('order.answered')
  await storePlacement(services, row, sending, account, placed)
}

/**
 * Stores the result of sending an order.
 * @param row the order before it was sent
 * @param sending the order in the state SENDING
 */
async function storePlacement(
  services: Services,
  row: OrderRow,
  sending: OrderRow,
  account: AccountRow,
  placed: Awaited<ReturnType<Venue['place']>>,
): Promise<void> {
  switch (placed.kind) {
    case 'refused':
      if (placed.code === 'KEY_REFUSED') {
        await noteRefused(
          services,
          account.id,
          new VenueError('refused', `${row.exchange} rejected an order`),
        )
      }
      return end(services, sending, 'rejected', placed.code)
    case 'later':
      await services.database.transaction((tx) =>
        advanceOrder(tx, sending, {
          state: 'NEW',
          sent_at: null,
          last_error: placed.code,
          again: backOff(row),
        }),
      )
      return
    case 'unknown':
      await services.database.transaction((tx) =>
        advanceOrder(tx, sending, {
          state: 'ASKING',
          status: 'unknown',
          last_error: placed.reason,
          again: 0,
        }),
      )
      services.environment.checkpoint('order.unknown')
      return
    case 'accepted':
      await services.database.transaction((tx) =>
        advanceOrder(tx, sending, {
          state: 'WORKING',
          venue_id: placed.venueId,
          last_error: null,
          again: 0,
        }),
      )
      services.environment.checkpoint('order.placed')
  }
}

/**
 * Queries the outcome of an order at the exchange, and stores it. The order is never sent again.
 */
async function ask(services: Services, row: OrderRow, venue: Venue): Promise<void> {
  const ref: OrderRef = {
    clientId: row.client_id,
    venueId: row.venue_id,
    symbol: row.market,
    sentAt: (row.sent_at ?? row.created_at).getTime(),
  }
  if (row.state === 'WORKING' && row.cancel_requested_at !== null && row.final_seen === null)
    await venue.cancel(ref)
  const match = await venue.find(ref)
  if (match.kind === 'absent') return absent(services, row, venue, ref)
  await write(services, row, match, await fillsOf(venue, row, ref, match.order))
}

/** Returns the fills of an order, if some are not stored yet. */
async function fillsOf(venue: Venue, row: OrderRow, ref: OrderRef, order: VenueOrder) {
  if (order.fills) return order.fills
  const isMore =
    order.filled === null ? order.state !== 'rejected' : order.filled > BigInt(row.filled)
  return isMore ? venue.fills({ ...ref, venueId: order.venueId }) : []
}

async function write(
  services: Services,
  row: OrderRow,
  { order }: Extract<OrderLookup, { kind: 'found' }>,
  fills: Awaited<ReturnType<typeof fillsOf>>,
): Promise<void> {
  await services.database.transaction(async (tx) => {
    await lockHeld(tx, row)
    const { filled, cost, fees } = await noteFills(tx, row, fills)
    const existing = {
      venue_id: order.venueId,
      filled: filled.toString(),
      cost: cost.toString(),
      fees,
      last_error: null,
    }
    const amount = BigInt(row.amount)
    if (fills.length > 0)
      await tx.query('update exchange_accounts set reconcile_at = $2 where id = $1', [
        row.account_id,
        tx.now(),
      ])
    if (order.state === 'open' || filled < (order.filled ?? 0n)) {
      // Fills are reported with a delay: an order does not end here before all of them are stored.
      await advanceOrder(tx, row, {
        ...existing,
        state: 'WORKING',
        status: filled > 0n ? 'partially_filled' : 'open',
        final_seen: null,
        again: order.state === 'open' ? await pace(services, row) : SEEN_TWICE_MS,
      })
      return
    }
    const isWhole = filled >= amount
    if (!isWhole && row.final_seen !== filled.toString()) {
      await advanceOrder(tx, row, {
        ...existing,
        state: 'WORKING',
        status: filled > 0n ? 'partially_filled' : 'open',
        final_seen: filled.toString(),
        again: SEEN_TWICE_MS,
      })
      return
    }
    const status = isWhole
      ? 'filled'
      : order.state === 'rejected' && filled === 0n
        ? 'rejected'
        : 'cancelled'
    await advanceOrder(tx, row, {
      ...existing,
      state: 'ENDED',
      status,
      reason: reasonFor(row, status),
      again: null,
      fee_charged: (await settleOrderFee(services, tx, row, filled)).toString(),
    })
  })
  services.environment.checkpoint('order.written')
}

function reasonFor(row: OrderRow, status: OrderStatus): string | null {
  if (status === 'rejected') return 'REJECTED_BY_EXCHANGE'
  if (status !== 'cancelled' || row.cancel_requested_at !== null) return null
  if (row.time_in_force === 'GTC') return 'CANCELLED_BY_EXCHANGE'
  return row.type === 'market' ? 'PRICE_PROTECTION' : 'NOT_FILLED_AT_PRICE'
}

/**
 * Processes an order that is in no list of the exchange. This proves that it was never accepted
 * only if it is queried within the times that the exchange's traits specify.
 */
async function absent(
  services: Services,
  row: OrderRow,
  venue: Venue,
  { sentAt }: OrderRef,
): Promise<void> {
  const { absence } = venue.traits
  const age = services.environment.now() - sentAt
  const isProof =
    row.venue_id === null &&
    row.state === 'ASKING' &&
    absence !== null &&
    age >= absence.afterMs &&
    (absence.beforeMs === null || age < absence.beforeMs)
  if (isProof) return end(services, row, 'rejected', 'NOT_TAKEN')
  await waitFor(
    services,
    row,
    new VenueError('missing', `${row.exchange} does not return the order`),
  )
}

/**
 * Schedules the next query of an order whose outcome the exchange did not report. The order stays
 * unchanged, because nothing may be assumed, and an alert is raised if this lasts.
 */
async function waitFor(services: Services, row: OrderRow, error: VenueError): Promise<void> {
  if (error.kind === 'refused') await noteRefused(services, row.account_id, error)
  const now = services.environment.now()
  const isOld = row.sent_at !== null && now - row.sent_at.getTime() >= ALERT_MS
  const isAlert =
    isOld && row.alerted_at === null && (row.state === 'ASKING' || row.state === 'SENDING')
  await services.database.transaction((tx) =>
    advanceOrder(tx, row, {
      last_error: error.message.slice(0, 300),
      ...(isAlert ? { alerted_at: new Date(now) } : {}),
      again: error.kind === 'refused' ? REFUSED_WAIT_MS : backOff(row),
    }),
  )
  if (isAlert) {
    services.metrics.ordersUnknown.labels(row.exchange).inc()
    services.log.error(
      {
        order: row.id,
        exchange: row.exchange,
        client_order_id: row.client_id,
        err: reasonOf(error),
      },
      'the outcome of an order is unknown: look it up at the exchange by its client id; no other order is sent',
    )
  }
}

/**
 * Locks an order's row.
 * @throws LeaseLost
 */
async function lockHeld(
  tx: Queryable,
  { id, lease_token: token, workspace_id: workspace }: OrderRow,
): Promise<void> {
  const held = await tx.one(
    'select 1 from orders where workspace_id = $3 and id = $1 and lease_token = $2 for update',
    [id, token, workspace],
  )
  if (!held) throw new LeaseLost(id)
}

/** Ends an order without fills. */
async function end(
  services: Services,
  row: OrderRow,
  status: 'cancelled' | 'rejected',
  reason: string | null,
): Promise<void> {
  await services.database.transaction(async (tx) => {
    // The row is locked first, as everywhere.
    await lockHeld(tx, row)
    const charged = await settleOrderFee(services, tx, row, 0n)
    await advanceOrder(tx, row, {
      state: 'ENDED',
      status,
      reason,
      fee_charged: charged.toString(),
      again: null,
    })
  })
  services.environment.checkpoint('order.ended')
}

const backOff = ({ attempts }: OrderRow): number =>
  Math.min(ASK_MAX_MS, (SECOND_MS * 2 ** Math.min(attempts, 10)) / 2)

/**
 * Returns the delay until the next query, because exchanges limit queries: new orders are queried
 * often, and the more orders there are, the less often each is queried.
 */
async function pace(
  services: Services,
  { workspace_id: workspace, account_id: accountId, created_at: created }: OrderRow,
): Promise<number> {
  const open = await services.database.one<{ count: string }>(
    `select count(*)::text count from orders where workspace_id = $2 and account_id = $1
      and state <> 'ENDED'`,
    [accountId, workspace],
  )
  const age = services.environment.now() - created.getTime()
  const base =
    age < 10 * SECOND_MS ? SECOND_MS : age < 2 * MINUTE_MS ? 3 * SECOND_MS : 15 * SECOND_MS
  return Math.max(Math.min(base, services.settings.pollMs * 30), Number(open?.count ?? 0) * 300)
}
