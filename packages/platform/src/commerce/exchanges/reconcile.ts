import { reasonOf } from '@custody/chains/reason'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Environment } from '../../core/environment.ts'
import type { Logger } from 'pino'
import type { Aml } from '../../custody/aml/aml.ts'
import type { Venues } from './venues.ts'
import { tellAccount, venueOf, type AccountRow, type Gap, type Suspected } from './account.ts'
import { keepBalances } from './balances.ts'
import { bookCorrection, claims } from './books.ts'
import { readVenueAccount, settleIdentity, type VenueAccount } from './identity.ts'
import { VenueError, type Balance } from './venue.ts'

interface Services {
  environment: Environment
  database: Database
  log: Logger
  aml: Aml
  exchanges: Venues
}

/** Interval in milliseconds at which each account is compared with its exchange. */
export const RECONCILE_MS = 60_000
/**
 * Time in milliseconds for which a difference must last before it is confirmed, because fills
 * arrive with a delay.
 */
const SUSPECT_MS = 30_000
/** Duration of a lease in milliseconds, longer than the requests of one comparison can take. */
const LEASE_MS = 60_000
const AT_ONCE = 4
const LOOK_MS = 1000

/**
 * Compares an exchange's totals with the ledger. `gaps` is null if the ledger changed during the
 * query, because then nothing can be compared.
 * @throws VenueError
 */
export async function compareAccount(
  services: Pick<Services, 'database' | 'aml' | 'exchanges'>,
  row: AccountRow,
): Promise<{ balances: Balance[]; gaps: Gap[] | null }> {
  const before = await claims(services.database, row)
  const balances = await (await venueOf(services, row)).balances()
  const after = await claims(services.database, row)
  const text = (held: Map<string, bigint>) => [...held].join()
  return { balances, gaps: text(before) === text(after) ? gapsOf(after, balances) : null }
}

function gapsOf(books: Map<string, bigint>, balances: readonly Balance[]): Gap[] {
  const there = new Map(balances.map(({ coin, total }) => [coin, total]))
  return [...new Set([...books.keys(), ...there.keys()])].sort().flatMap((coin) => {
    const [ledger, venue] = [books.get(coin) ?? 0n, there.get(coin) ?? 0n]
    return ledger === venue ? [] : [{ coin, ledger: ledger.toString(), venue: venue.toString() }]
  })
}

const isSame = (one: Gap) => (other: Gap) =>
  one.coin === other.coin && one.ledger === other.ledger && one.venue === other.venue

/**
 * Reads an exchange's balances and compares them with the ledger. If they differ, the unfinished
 * orders are queried first. An account whose identity is not final is identified first.
 * @throws VenueError
 */
export async function reconcileAccount(services: Services, row: AccountRow): Promise<void> {
  const identified = await readVenueAccount(await venueOf(services, row), row)
  const { balances, gaps } = await compareAccount(services, row)
  await services.database.transaction(async (tx) => {
    await identify(services, tx, row, identified, balances)
    const account = await tx.one<AccountRow>(
      `select * from exchange_accounts where id = $1 and status <> 'deleted' for update`,
      [row.id],
    )
    if (!account) return
    await keepBalances(tx, row.id, balances)
    if (account.identity === 'duplicate') await bookTotals(services, tx, account, [])
    // The claims of a former duplicate were booked after the comparison.
    const found = row.identity === 'duplicate' ? null : gaps
    await keepComparison(tx, account, account.identity === 'duplicate' ? [] : found)
  })
  services.environment.checkpoint('exchange-account.reconciled')
}

/**
 * Determines which of the accounts that are the same at the exchange is counted. The ledger has no
 * claims of the others.
 * @param identified how the account is recognized; null: as before
 */
async function identify(
  services: Services,
  tx: Queryable,
  row: AccountRow,
  identified: VenueAccount | null,
  balances: readonly Balance[],
): Promise<void> {
  // A duplicate is checked each time, because the account that was counted may be unlinked.
  const known: VenueAccount | null =
    row.identity === 'duplicate' && row.venue_account !== null
      ? {
          venueAccount: row.venue_account,
          identity: row.venue_account.startsWith('id ') ? 'proven' : 'unproven',
        }
      : null
  const account = identified ?? known
  if (account === null) return
  for (const changed of await settleIdentity(tx, row, account)) {
    if (changed.identity === 'duplicate') {
      await bookTotals(services, tx, changed, [])
      await tx.query(
        `update exchange_accounts set difference = '[]', suspected = '[]' where id = $1`,
        [changed.id],
      )
      services.log.warn(
        { account: changed.id, exchange: changed.exchange },
        'two linked exchange accounts are the same account at the exchange; the one linked later is not counted',
      )
    } else if (row.identity === 'duplicate') {
      await bookTotals(services, tx, changed, balances)
    }
    await tellAccount(tx, changed, 'exchange_account.updated')
  }
}

/** Corrects the ledger's claims of an account to these balances. */
async function bookTotals(
  { environment }: Pick<Services, 'environment'>,
  tx: Queryable,
  account: AccountRow,
  balances: readonly Balance[],
): Promise<void> {
  const gaps = gapsOf(await claims(tx, account), balances)
  if (gaps.length === 0) return
  const changes = gaps.map(({ coin, ledger, venue }): [string, bigint] => [
    coin,
    BigInt(venue) - BigInt(ledger),
  ])
  await bookCorrection(tx, account, `${account.id}:${environment.uuid()}`, new Map(changes))
}

/**
 * Stores the result of a comparison. A difference is confirmed once it has lasted long enough.
 * @param gaps null: nothing could be compared
 */
async function keepComparison(
  tx: Queryable,
  account: AccountRow,
  gaps: readonly Gap[] | null,
): Promise<void> {
  const now = tx.now()
  const suspected =
    gaps === null
      ? account.suspected
      : gaps.map((gap): Suspected => ({
          ...gap,
          since: account.suspected.find(isSame(gap))?.since ?? now.getTime(),
        }))
  const confirmed =
    gaps === null
      ? account.difference
      : suspected
          .filter(({ since }) => now.getTime() - since >= SUSPECT_MS)
          .map(({ coin, ledger, venue }): Gap => ({ coin, ledger, venue }))
  if (suspected.some(({ since }) => since === now.getTime())) await askOrders(tx, account)
  const isChanged =
    confirmed.length !== account.difference.length ||
    !confirmed.every((gap) => account.difference.some(isSame(gap)))
  const after = (await tx.one<AccountRow>(
    `update exchange_accounts set status = 'active', reason = null, difference = $2,
       suspected = $3,
       updated_at = case when $4 then $5 else updated_at end
     where id = $1 returning *`,
    [
      account.id,
      JSON.stringify(confirmed),
      JSON.stringify(suspected),
      isChanged || account.status === 'failing',
      now,
    ],
  )) as AccountRow
  if (isChanged) await tellAccount(tx, after, 'exchange_account.difference')
  else if (account.status === 'failing') await tellAccount(tx, after, 'exchange_account.updated')
}

/**
 * Makes the account's working orders due, because a fill that has not been read yet would explain
 * the difference.
 */
async function askOrders(
  tx: Queryable,
  { id, workspace_id: workspace }: AccountRow,
): Promise<void> {
  await tx.query(
    `update orders set next_run_at = $2 where workspace_id = $3 and account_id = $1
      and state = 'WORKING' and lease_token is null`,
    [id, tx.now(), workspace],
  )
}

/**
 * Records that an exchange rejects the key; emits the event only once. Orders that wait for the
 * exchange continue to wait.
 */
export async function noteRefused(
  services: Pick<Services, 'database'>,
  accountId: string,
  error: VenueError,
): Promise<void> {
  await services.database.transaction(async (tx) => {
    const row = await tx.one<AccountRow>(
      `update exchange_accounts set status = 'failing', reason = $2, updated_at = $3 where id = $1
        and status = 'active' returning *`,
      [accountId, (error.code ?? error.message).slice(0, 200), tx.now()],
    )
    if (row) await tellAccount(tx, row, 'exchange_account.failing')
  })
}

/**
 * SQL condition for an account of `exchange_accounts` that is due for a comparison at the time $1.
 */
const IS_DUE = `(reconcile_at <= $1 and (lease_until is null or lease_until < $1) and status <> 'deleted')`

/**
 * Compares the accounts that are due. An account that cannot be queried is queried again at its
 * next turn and does not delay others.
 * @returns the number of accounts that were due
 */
export async function reconcileDue(services: Services): Promise<number> {
  const now = services.database.now()
  const due = await services.database.query<AccountRow>(
    // The selection is materialized, so that it is evaluated only once despite its limit.
    `with mine as materialized (
       select id from exchange_accounts where ${IS_DUE} order by reconcile_at limit $3
         for update skip locked
     ) update exchange_accounts a set lease_until = $2 from mine where a.id = mine.id returning a.*`,
    [now, new Date(now.getTime() + LEASE_MS), AT_ONCE],
  )
  await Promise.all(
    due.map(async (row) => {
      try {
        await reconcileAccount(services, row)
      } catch (error) {
        if (error instanceof VenueError && error.kind === 'refused')
          await noteRefused(services, row.id, error)
        services.log.warn(
          { account: row.id, exchange: row.exchange, err: reasonOf(error) },
          'an exchange account could not be compared with the ledger',
        )
      }
      await services.database.query(
        'update exchange_accounts set lease_until = null, reconcile_at = $2 where id = $1',
        [row.id, new Date(services.environment.now() + RECONCILE_MS)],
      )
    }),
  )
  return due.length
}

/**
 * Creates the loop that compares the ledger of every account with its exchange, each once a minute.
 */
export const reconcileLoop = (services: Services): Loop => ({
  name: 'exchange accounts',
  everyMs: LOOK_MS,
  due: `exists (select 1 from exchange_accounts where ${IS_DUE})`,
  run: async () => (await reconcileDue(services)) === AT_ONCE,
})
