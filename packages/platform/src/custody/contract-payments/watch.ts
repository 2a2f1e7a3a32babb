import { BALANCES_MAX, type Asset, type Network, type Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import type { Database } from '../../core/database/pool.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Metrics } from '../../core/metrics.ts'
import { comparedEveryS } from '../assets/contract-payments.ts'
import { isDust } from '../assets/dust.ts'
import { adoptSurplus, NotAdoptable } from '../deposits/adopted.ts'
import { Contradicted } from '../deposits/contradiction.ts'
import type { OwnAddress } from '../deposits/record.ts'
import { addressesAfter, addressesFirst } from './addresses.ts'
import { look, type Balances, type Look } from './look.ts'
import { Pauses } from './pauses.ts'

type Services = Parameters<typeof adoptSurplus>[0] & {
  database: Database
  registry: Registry
  log: Logger
  metrics: Metrics
}

/** Number of blocks that the scan may be behind: the state of older ones is not read. */
const BEHIND_MAX = 16
/** Share of a pass for addresses of the round, if the first ones would fill it: one in this many. */
const ROUND_SHARE = 4
/** Number of surpluses that are recorded at the same time. */
const ADOPTED_AT_ONCE = 4

/** State of the comparison of one network, as stored. */
interface Watch {
  cursor: string
  round_began_at: Date
  round_s: number | null
}

/** A workspace whose surpluses are not credited now. */
interface Paused {
  workspace: string
  reason: string
}

type WithBalances = Chain & { balances: Balances }
export const hasBalances = (chain: Chain): chain is WithBalances => chain.balances !== undefined

/** Returns the addresses of a network at which a payment is expected, such as those of open invoices. */
export type Awaited = (network: string, most: number) => Promise<string[]>

/**
 * Creates the loop that finds native coins which contracts paid to our addresses. The blocks do not list
 * them, so the balances are compared with the books, and a surplus becomes a deposit like one that the
 * operator adopts.
 * @param o.calls number of requests a minute
 * @param o.follows whether this process reads the blocks of the network
 */
export function watchLoop(
  services: Services,
  chain: WithBalances,
  o: { calls: number; awaited: Awaited; follows: () => boolean },
): Loop {
  const { network } = chain
  const pauses = new Pauses(services, chain)
  return {
    name: `watch ${network.code}`,
    everyMs: comparedEveryS(services.registry) * 1000,
    async run(signal) {
      if (o.follows()) await watch(services, chain, pauses, { ...o, signal })
      return false
    },
  }
}

/** Looks once at as many addresses as the budget of requests allows, and records surpluses. */
async function watch(
  services: Services,
  chain: WithBalances,
  pauses: Pauses,
  { calls, awaited, signal }: { calls: number; awaited: Awaited; signal: AbortSignal },
): Promise<void> {
  const { database, registry } = services
  const { network } = chain
  const scan = await database.one<{ height: string | null; tip: string | null; halted: boolean }>(
    `select height::text, tip_height::text tip, contradiction is not null halted from network_scans
     where network = $1`,
    [network.code],
  )
  const height = Number(scan?.height ?? -1)
  if (height < 0 || scan?.halted || Number(scan?.tip) - height > BEHIND_MAX) return
  const native = registry.asset(network.native_asset) as Asset
  const found = await chosen(services, network, { calls, awaited, height })
  if (found.owners.length === 0) return
  const looks = await look(services, chain, found.owners, height)
  for (const { owner, deficit } of looks) if (deficit > 0n) pauses.differs(owner.workspace_id)
  // Less than that is credited once the sum at the address is more.
  const surpluses = looks.filter(
    ({ surplus }) => surplus > 0n && !isDust(registry, native, surplus),
  )
  const paused = await record(services, chain, pauses, {
    surpluses,
    height,
    knownAt: lastRead(found.before),
    signal,
  })
  await save(services, network, { ...found, paused })
}

/** Returns the addresses of this pass, and where the round of all addresses stands afterwards. */
async function chosen(
  { database }: Services,
  network: Network,
  { calls, awaited, height }: { calls: number; awaited: Awaited; height: number },
): Promise<{ owners: OwnAddress[]; before: Watch; cursor: string; isRoundOver: boolean }> {
  const before = (await database.one<Watch>(
    `insert into contract_watches (network, round_began_at) values ($1, $2)
     on conflict (network) do update
       set round_began_at = coalesce(contract_watches.round_began_at, excluded.round_began_at)
     returning cursor, round_began_at, round_s`,
    [network.code, database.now()],
  )) as Watch
  const most = calls * BALANCES_MAX
  const first = await addressesFirst(database, network, {
    awaited: await awaited(network.code, most),
    height,
    most: most - Math.ceil(most / ROUND_SHARE),
  })
  const left = most - first.length
  const rest = await addressesAfter(database, network, { after: before.cursor, most: left })
  const isRoundOver = rest.length < left
  const owners = new Map([...first, ...rest].map((owner) => [owner.address, owner]))
  const cursor = isRoundOver ? '' : (rest.at(-1)?.address ?? '')
  return { owners: [...owners.values()], before, cursor, isRoundOver }
}

/**
 * Returns when each address was read before, at the earliest: an invoice that expired since then may have
 * been paid in time.
 */
const lastRead = ({ round_began_at: began, round_s: tookS }: Watch): Date =>
  new Date(tookS === null ? 0 : began.getTime() - tookS * 1000)

/**
 * Records surpluses as deposits, unless those of their workspace are not credited now.
 * @returns the workspaces where they are not
 */
async function record(
  services: Services,
  chain: Chain,
  pauses: Pauses,
  {
    surpluses,
    height,
    knownAt,
    signal,
  }: { surpluses: readonly Look[]; height: number; knownAt: Date; signal: AbortSignal },
): Promise<Paused[]> {
  const workspaces = new Set(surpluses.map(({ owner }) => owner.workspace_id))
  const reasons = new Map<string, string>()
  for (const workspace of workspaces) {
    const reason = await pauses.reasonFor(workspace, height)
    if (reason !== null) reasons.set(workspace, reason)
  }
  const left = surpluses.filter(({ owner }) => !reasons.has(owner.workspace_id))
  await Promise.all(
    Array.from({ length: ADOPTED_AT_ONCE }, async () => {
      for (let next = left.shift(); next && !signal.aborted; next = left.shift())
        await adopt(services, chain, next, knownAt)
    }),
  )
  return [...reasons].map(([workspace, reason]) => ({ workspace, reason }))
}

async function adopt(
  services: Services,
  chain: Chain,
  { owner, surplus }: Look,
  knownAt: Date,
): Promise<void> {
  const { network } = chain
  const asset = services.registry.asset(network.native_asset) as Asset
  const details = { network: network.code, address: owner.address, amount: surplus.toString() }
  try {
    const { id } = await adoptSurplus(services, chain, {
      owner,
      asset,
      amount: surplus,
      hash: null,
      knownAt,
    })
    services.log.info(
      { ...details, transaction: id },
      'an address holds coins that no transfer in a block explains; they are recorded as a deposit',
    )
  } catch (error) {
    // The books or the balance changed meanwhile: the next pass looks again.
    if (error instanceof NotAdoptable || error instanceof Contradicted) return
    services.log.warn(
      { ...details, err: reasonOf(error) },
      'coins at an address that no transfer explains could not be recorded; this is retried',
    )
  }
}

async function save(
  { database, metrics }: Services,
  network: Network,
  o: {
    before: Watch
    cursor: string
    isRoundOver: boolean
    paused: readonly Paused[]
  },
): Promise<void> {
  const now = database.now()
  const tookS = Math.ceil(Math.max(0, now.getTime() - o.before.round_began_at.getTime()) / 1000)
  metrics.watchPaused.labels(network.code).set(o.paused.length)
  metrics.watchAge
    .labels(network.code)
    .set(o.isRoundOver ? tookS : Math.max(o.before.round_s ?? 0, tookS))
  await database.query(
    `update contract_watches set cursor = $2, looked_at = $3, paused = $4,
       round_s = case when $5 then $6 else round_s end,
       round_began_at = case when $5 then $3 else round_began_at end
     where network = $1`,
    [network.code, o.cursor, now, JSON.stringify(o.paused), o.isRoundOver, tookS],
  )
}
