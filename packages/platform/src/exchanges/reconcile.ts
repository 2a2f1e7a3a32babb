import { reasonOf } from '@custody/chains/reason'
import type { Queryable } from '../database/pool.ts'
import type { Loop } from '../engine/loop.ts'
import type { Services } from '../engine/services.ts'
import { tellAccount, venueOf, type AccountRow, type Gap, type Suspected } from './account.ts'
import { keepBalances } from './balances.ts'
import { claims } from './books.ts'
import { VenueError, type Balance } from './venue.ts'

/** Each account is compared with its venue so often. */
export const RECONCILE_MS = 60_000
/** A difference is one once it was found so long: fills arrive at their own pace. */
const SUSPECT_MS = 30_000
/** Longer than the requests of one comparison can take. */
const LEASE_MS = 60_000
const AT_ONCE = 4
const LOOK_MS = 1000

/**
 * Where a venue's totals are others than the books claim. Nothing is compared (`null`) where the
 * books moved while the venue was asked. @throws VenueError
 */
export async function compareAccount(
  services: Services,
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
 * Reads a venue's balances and holds the books against them. What differs is first looked for among
 * the orders that are under way.
 * @throws VenueError
 */
export async function reconcileAccount(services: Services, row: AccountRow): Promise<void> {
  const { balances, gaps } = await compareAccount(services, row)
  await services.database.transaction(async (tx) => {
    const account = await tx.one<AccountRow>(
      `select * from exchange_accounts where id = $1 and status <> 'deleted' for update`,
      [row.id],
    )
    if (!account) return
    await keepBalances(tx, row.id, balances)
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
    if (suspected.some(({ since }) => since === now.getTime())) await askOrders(tx, row)
    const isChanged =
      confirmed.length !== account.difference.length ||
      !confirmed.every((gap) => account.difference.some(isSame(gap)))
    const after = (await tx.one<AccountRow>(
      `update exchange_accounts set status = 'active', reason = null, difference = $2, suspected = $3,
         updated_at = case when $4 then $5 else updated_at end
       where id = $1 returning *`,
      [
        row.id,
        JSON.stringify(confirmed),
        JSON.stringify(suspected),
        isChanged || account.status === 'failing',
        now,
      ],
    )) as AccountRow
    if (isChanged) await tellAccount(tx, after, 'exchange_account.difference')
    else if (account.status === 'failing') await tellAccount(tx, after, 'exchange_account.updated')
  })
  services.environment.checkpoint('exchange-account.reconciled')
}

/** A fill that is not known here yet would explain it. */
async function askOrders(
  tx: Queryable,
  { id, workspace_id: workspace }: AccountRow,
): Promise<void> {
  await tx.query(
    `update orders set next_run_at = $2 where workspace_id = $3 and account_id = $1 and state = 'WORKING' and lease_token is null`,
    [id, tx.now(), workspace],
  )
}

/** Notes that a venue refuses the key; told once. What waits for the venue goes on waiting. */
export async function noteRefused(
  services: Services,
  accountId: string,
  error: VenueError,
): Promise<void> {
  await services.database.transaction(async (tx) => {
    const row = await tx.one<AccountRow>(
      `update exchange_accounts set status = 'failing', reason = $2, updated_at = $3 where id = $1 and status = 'active' returning *`,
      [accountId, (error.code ?? error.message).slice(0, 200), tx.now()],
    )
    if (row) await tellAccount(tx, row, 'exchange_account.failing')
  })
}

/** Of `exchange_accounts`, in SQL, at the time $1. */
const IS_DUE = `(reconcile_at <= $1 and (lease_until is null or lease_until < $1) and status <> 'deleted')`

/**
 * Compares what is due; one that cannot be asked is asked again in its turn, and keeps nobody
 * waiting. @returns how many there were
 */
export async function reconcileDue(services: Services): Promise<number> {
  const now = services.database.now()
  const due = await services.database.query<AccountRow>(
    // Materialized: what is taken under a limit is looked for once.
    `with mine as materialized (
       select id from exchange_accounts where ${IS_DUE} order by reconcile_at limit $3 for update skip locked
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

/** Holds every account's books against its venue, each once a minute. */
export const reconcileLoop = (services: Services): Loop => ({
  name: 'exchange accounts',
  everyMs: LOOK_MS,
  due: `exists (select 1 from exchange_accounts where ${IS_DUE})`,
  run: async () => (await reconcileDue(services)) === AT_ONCE,
})
