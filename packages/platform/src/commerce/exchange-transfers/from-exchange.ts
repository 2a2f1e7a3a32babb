import { bookWithdrawal, bookWithdrawalBack } from '../exchanges/books.ts'
import { advance } from '../exchanges/lease.ts'
import { noteRefused } from '../exchanges/reconcile.ts'
import { VenueError, type Transfer } from '../exchanges/venue.ts'
import { sameHash } from './to-exchange.ts'
import { toAmount, TRANSFERS, type ExchangeTransferRow } from './transfer.ts'
import { waitOn, type Step } from './wait.ts'

/**
 * Deadline for sending, in milliseconds. A request that was not sent by then will never be sent.
 */
const LEAVES_WITHIN_MS = 30_000
/**
 * Time in milliseconds within which a request that the exchange did not accept because of its rate
 * limit is sent again.
 */
const TRY_AGAIN_MS = 60_000
const TRY_AGAIN_WAIT_MS = 2000
/** Maximum time in milliseconds by which the exchange's clock may be behind. */
const BEFORE_MS = 900_000
/**
 * Tolerance in milliseconds for the exchange's clock when withdrawals are matched by their data: an
 * earlier withdrawal is not this one.
 */
const CLOCK_MS = 60_000
/** Time in milliseconds after a lost response at which an alert is raised. */
const ALERT_MS = 120_000

/**
 * Executes one step of a withdrawal from an exchange: it is requested once, found again in the
 * exchange's lists, and followed until it is a deposit here.
 */
export async function bringOut(step: Step): Promise<void> {
  const { row } = step
  switch (row.state) {
    case 'NEW':
      return send(step)
    // A worker that crashed in this state may have sent the request, so only the exchange knows the
    // outcome.
    case 'SENDING':
    case 'ASKING':
      return ask(step)
    default:
      return follow(step)
  }
}

/** Requests a withdrawal once. From the commit of SENDING on, its result is only queried. */
async function send({ services, row, account, venue }: Step): Promise<void> {
  const now = services.environment.now()
  const isLate = now - row.created_at.getTime() > TRY_AGAIN_MS
  if (isLate && row.last_error !== null)
    return fail({ services, row, account, venue }, row.last_error)
  // If an exchange stores no client ID, two identical withdrawals can only be distinguished by
  // time, so they run one after the other.
  const isBlocked =
    !venue.traits.withdrawalId &&
    (await services.database.one(
      `select 1 from exchange_transfers where workspace_id = $3 and account_id = $1 and coin = $2
        and direction = 'from_exchange'
       and state in ('SENDING', 'ASKING')`,
      [row.account_id, row.coin, row.workspace_id],
    ))
  if (isBlocked) {
    await services.database.transaction((tx) =>
      advance(tx, TRANSFERS, row, { again: TRY_AGAIN_WAIT_MS }),
    )
    return
  }
  const sending = await services.database.transaction((tx) =>
    advance(tx, TRANSFERS, row, { state: 'SENDING', sent_at: new Date(now), again: 'hold' }),
  )
  services.environment.checkpoint('exchange-withdrawal.sending')
  const placed = await venue.withdraw(
    {
      clientId: row.client_id as string,
      coin: row.coin,
      network: row.network,
      address: row.address,
      tag: row.address_tag,
      amount: BigInt(row.amount),
      key: row.venue_key,
    },
    now + LEAVES_WITHIN_MS,
  )
  services.environment.checkpoint('exchange-withdrawal.answered')
  await storeRequest({ services, row: sending, account, venue }, placed)
}

/** Stores the result of a withdrawal request; `step` has its row in the state SENDING. */
async function storeRequest(
  step: Step,
  placed: Awaited<ReturnType<Step['venue']['withdraw']>>,
): Promise<void> {
  const { services, row, account } = step
  switch (placed.kind) {
    case 'refused':
      if (placed.code === 'KEY_REFUSED') {
        await noteRefused(
          services,
          account.id,
          new VenueError('refused', `${row.exchange} rejected a withdrawal`),
        )
      }
      return fail(step, placed.code)
    case 'later':
      await services.database.transaction((tx) =>
        advance(tx, TRANSFERS, row, {
          state: 'NEW',
          sent_at: null,
          last_error: placed.code,
          again: TRY_AGAIN_WAIT_MS,
        }),
      )
      return
    case 'unknown':
      await services.database.transaction((tx) =>
        advance(tx, TRANSFERS, row, {
          state: 'ASKING',
          status: 'unknown',
          last_error: placed.reason,
          again: 0,
        }),
      )
      return
    case 'accepted':
      if (placed.venueId === null) return ask(step)
      await taken(step, placed.venueId)
  }
}

/** Ends the withdrawal as failed; no coins have left the exchange. */
async function fail({ services, row }: Step, reason: string): Promise<void> {
  await services.database.transaction((tx) =>
    advance(tx, TRANSFERS, row, { state: 'FAILED', status: 'failed', reason, again: null }),
  )
}

/**
 * Books a withdrawal that the exchange has accepted, which reduces the ledger's claim on the
 * exchange.
 */
async function taken({ services, row, account }: Step, venueId: string): Promise<void> {
  await services.database.transaction(async (tx) => {
    await bookWithdrawal(tx, account, row.id, row.coin, BigInt(row.amount))
    await advance(tx, TRANSFERS, row, {
      state: 'WITHDRAWING',
      status: 'pending',
      venue_id: venueId,
      last_error: null,
      again: 0,
    })
  })
  services.environment.checkpoint('exchange-withdrawal.taken')
}

const withdrawalsOf = ({ row, venue }: Step): Promise<Transfer[]> =>
  venue.withdrawals(row.coin, (row.sent_at ?? row.created_at).getTime() - BEFORE_MS)

/** Queries the outcome of a request whose response was lost. The request is never sent again. */
async function ask(step: Step): Promise<void> {
  const { services, row, venue } = step
  const now = services.environment.now()
  const sentAt = (row.sent_at ?? row.created_at).getTime()
  const listed = await withdrawalsOf(step)
  const others = new Set(
    (
      await services.database.query<{ venue_id: string }>(
        `select venue_id from exchange_transfers
     where workspace_id = $2 and account_id = $1 and direction = 'from_exchange'
       and venue_id is not null`,
        [row.account_id, row.workspace_id],
      )
    ).map(({ venue_id }) => venue_id),
  )
  const match = listed.find((each) => isOurs(row, each, sentAt) && !others.has(each.venueId))
  if (match) return taken(step, match.venueId)
  const { absence } = venue.traits
  const waited = now - sentAt
  const isProof =
    absence !== null &&
    waited > Math.max(absence.afterMs, LEAVES_WITHIN_MS) &&
    (absence.beforeMs === null || waited < absence.beforeMs)
  if (isProof) {
    return fail(step, 'NOT_TAKEN')
  }
  if (waited > ALERT_MS && row.overdue_at === null) {
    const where = { transfer: row.id, exchange: row.exchange, asset: row.asset }
    services.log.error(
      where,
      'it is unknown whether an exchange accepted a withdrawal: check it at the exchange',
    )
    return waitOn(services, row, { state: 'ASKING', status: 'unknown', overdue_at: new Date(now) })
  }
  return waitOn(services, row, { state: 'ASKING', status: 'unknown' })
}

/**
 * Returns whether a listed withdrawal is this one: by the client ID if the exchange stores it,
 * otherwise by its data. Lists report the amount with or without the fee.
 */
function isOurs(row: ExchangeTransferRow, each: Transfer, sentAt: number): boolean {
  if (each.clientId !== null) return each.clientId === row.client_id
  const amount = BigInt(row.amount)
  // Data that a list does not contain counts as matching, because a withdrawal that is overlooked
  // would be requested again.
  return (
    (each.address ?? row.address) === row.address &&
    (each.tag ?? row.address_tag) === row.address_tag &&
    each.at >= sentAt - CLOCK_MS &&
    (each.amount === amount || each.amount + (each.fee ?? 0n) === amount)
  )
}

/**
 * SQL for the hash of the transaction that paid a deposit `d` of a transaction `t`; if the operator
 * booked the deposit from a surplus, the hash that the operator entered.
 */
const TXID = 'case when d.adopted then t.hash else d.txid end'

/**
 * Follows the withdrawal until its coins are a deposit of the wallet, which is then assigned to it,
 * or until the exchange returns them. The exchange may pay several withdrawals in one transaction:
 * each is matched with the unassigned deposit that is nearest to its amount.
 */
async function follow(step: Step): Promise<void> {
  const { services, row, account } = step
  const listed = await withdrawalsOf(step)
  const there = listed.find(({ venueId }) => venueId === row.venue_id)
  if (there?.status === 'failed') {
    await services.database.transaction(async (tx) => {
      await bookWithdrawalBack(tx, account, row.id, row.coin, BigInt(row.amount))
      await advance(tx, TRANSFERS, row, {
        state: 'FAILED',
        status: 'failed',
        reason: 'the exchange cancelled it, and still has the coins',
        again: null,
      })
      await tx.query('update exchange_accounts set reconcile_at = $2 where id = $1', [
        account.id,
        tx.now(),
      ])
    })
    return
  }
  const hash = there?.hash ?? row.hash
  const fee = there?.fee?.toString() ?? row.fee
  if (hash === null) return waitOn(services, row, { fee })
  const deposit = await services.database.one<{ id: string; state: string; txid: string }>(
    `select t.id, t.state, ${TXID} txid from deposits d
      join transactions t on t.workspace_id = d.workspace_id and t.id = d.transaction_id
     where d.workspace_id = $8 and d.network = $1 and d.address = $2
       and d.tag is not distinct from $3 and d.asset = $4
       and lower(regexp_replace(${TXID}, '^0x', '')) = $5 and t.state <> 'REORGED'
       and not exists (select 1 from exchange_transfers other
         where other.workspace_id = $8 and other.transaction_id = t.id and other.id <> $6)
     order by abs(d.amount - $7::numeric), d.position limit 1`,
    [
      row.network,
      row.address,
      row.address_tag,
      row.asset,
      hash.toLowerCase().replace(/^0x/, ''),
      row.id,
      toAmount(there?.amount ?? BigInt(row.amount), services.registry.asset(row.asset)).toString(),
      row.workspace_id,
    ],
  )
  if (!deposit || !sameHash(deposit.txid, hash))
    return waitOn(services, row, { state: 'MOVING', hash, fee })
  const isIn = ['CREDITED', 'SWEPT'].includes(deposit.state)
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update transactions set source_type = 'EXCHANGE', source_id = $2
      where workspace_id = $3 and id = $1 and source_type <> 'EXCHANGE'`,
      [deposit.id, row.account_id, row.workspace_id],
    )
    if (!isIn) return
    await advance(tx, TRANSFERS, row, {
      state: 'DONE',
      status: 'completed',
      hash,
      fee,
      transaction_id: deposit.id,
      last_error: null,
      again: null,
    })
  })
  if (!isIn) await waitOn(services, row, { state: 'MOVING', hash, fee, transaction_id: deposit.id })
  services.environment.checkpoint('exchange-withdrawal.arrived')
}
