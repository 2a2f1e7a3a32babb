import { acceptReorgs } from '../accepting-operator.ts'
import { SeededRandom } from './seeded-random.ts'
import { Callers } from './callers.ts'
import { TransferLog } from './transfer-log.ts'
import { check } from './oracle.ts'
import { wrongInTrading } from './oracle-trading.ts'
import { injectFault, FAULTS } from './fault-actions.ts'
import type { SimulatedServer } from './setup-mode.ts'
import { PolicyPlay } from './policy/play.ts'
import { wrongUnderPolicy } from './policy/oracle.ts'
import { NO_FAULTS, drawFaultRates } from './probabilities.ts'
import { Traders } from './traders.ts'
import { SimulatedEnvironment } from './environment.ts'

/** Result of a simulation. */
export interface Report {
  seed: number
  /** First violated property; null if all properties held. */
  failure: string | null
  draws: readonly number[]
  networks: readonly string[]
  roles: readonly string[]
  steps: number
  transfers: number
  orders: number
  ends: Record<string, number>
  faults: ReadonlyMap<string, number>
  /** Operations until everything had ended; the oracle's own queries are not included. */
  trace: readonly string[]
  lines: readonly string[]
}

/** Maximum simulated time in milliseconds for all work to end after the faults have stopped. */
const HEALED_MS_MAX = 6 * 3_600_000
const STEPS_MAX = 25_000
const ACTIONS = 12
/** Number of actions if the workspace has a policy. Half of them concern the policy. */
const GOVERNED_ACTIONS = 20
/** Maximum number of turns in which a step of the time waits until no caller waits. */
const SKIP_TURNS = 600
/**
 * Upper bound (exclusive) of the number of turns for which faults continue after the last action.
 */
const GOING_ON_MAX = 13
/** Number of concurrent orders. They rest next to each other, and transfers cost more. */
const ORDERS_AT_ONCE = 3
/** How often, per thousand actions, the platform is asked what it says of its endpoints. */
const NAMED_RATE = 200
/** Maximum time in seconds during which no process has a needed role. */
const AWAY_S_MAX = 40
/** Maximum number of requests that are repeated at the end. */
const REPLAYED_MAX = 3
/** Time in milliseconds for which blocks continue after everything has ended. */
const CALM_MS = 20_000
/**
 * Number of block times, plus some time for queries, within which a network's scan must have moved
 * to count as current.
 */
const FOLLOWED_BLOCKS = 4
const FOLLOWED_MS = 5000

/** Selects whether any work is unfinished. */
const AT_WORK = `select 1 where exists (select 1 from transactions where status = 'pending'
  and not (kind = 'SWEEP' and plan ? 'waits'))
  or exists (select 1 from webhook_deliveries where status = 'pending')
    or exists (select 1 from events where position is null)
  or exists (select 1 from orders where state <> 'ENDED') or exists (select 1 from forward_rules
    where state in ('PENDING', 'ENDING'))`

/**
 * SQL that pays again the part of a tank's first fill that a reorganisation removed, as an operator
 * would who finds that it is missing.
 */
const REFILLED = `update gas_tanks g set first_fill_hash = null where first_fill_hash is not null
  and not exists (
  select 1 from ledger_accounts a where a.kind = 'tank' and a.workspace_id = g.workspace_id
    and a.asset = g.network and a.balance > 0)`

class Broken extends Error {}

/** Runs one seed. Findings are in the report; it throws only if the simulator itself fails. */
export async function simulate(
  databaseServer: SimulatedServer,
  seed: number,
  draws: readonly number[] | null = null,
): Promise<Report> {
  const random = new SeededRandom(seed, draws)
  const environment = new SimulatedEnvironment(databaseServer, seed, random)
  const callers = new Callers(environment)
  const transferLog = new TransferLog(environment, callers)
  const traders = new Traders(environment, callers)
  const people = new PolicyPlay(environment, callers)
  let failure: string | null = null
  try {
    await environment.open(databaseServer)
    if (traders.isOn) await environment.exchange.ready()
    await play({ environment, callers, transferLog, traders, people })
  } catch (error) {
    failure = [
      ...environment.problems,
      error instanceof Broken ? error.message : String((error as Error).stack),
    ].join('\n')
  }
  const ends: Record<string, number> = {}
  try {
    for (const { state } of await environment.database.query<{ state: string }>(
      `select state from transactions where kind = 'WITHDRAWAL'`,
    )) {
      ends[state] = (ends[state] ?? 0) + 1
    }
  } finally {
    await environment.close()
  }
  return {
    seed,
    failure,
    draws: random.draws,
    networks: environment.networks.map(({ place }) => place.code),
    roles: environment.roles,
    steps: Math.min(environment.schedule.trace.length, environment.storyLength),
    transfers: callers.wanted.length,
    orders: traders.wanted.length,
    ends,
    faults: environment.faults,
    trace: environment.schedule.trace.slice(0, environment.storyLength),
    lines: environment.lines,
  }
}

class Play {
  readonly #environment: SimulatedEnvironment
  /** Sum of the steps of the time, in milliseconds. */
  #skippedMs = 0
  #startsAtMs: number | null = null
  readonly #blocks: { code: string; nextMs: number; everyMs: number }[]

  constructor(environment: SimulatedEnvironment) {
    this.#environment = environment
    this.#blocks = environment.networks.map(({ place }) => ({
      code: place.code,
      nextMs: environment.schedule.nowMs,
      everyMs: place.blockMs,
    }))
  }

  /** Executes one scheduled operation or advances the time; blocks are made when they are due. */
  async turn(): Promise<void> {
    const { schedule } = this.#environment
    for (const block of this.#blocks) {
      if (schedule.nowMs < block.nextMs) continue
      block.nextMs = schedule.nowMs + block.everyMs
      await this.#environment.control({ command: 'mine', network: block.code, blocks: 1 })
      await acceptReorgs(this.#environment.database)
      if (this.#environment.isWhole) this.#environment.exchange.finish()
    }
    await this.#environment.buried()
    await this.#environment.weatherOracle.settled()
    this.#startAgain()
    if (schedule.steps > STEPS_MAX)
      throw new Broken(`it does not end: ${schedule.steps} steps: ${await this.pending()}`)
    await schedule.step(Math.min(...this.#blocks.map(({ nextMs }) => nextMs)))
  }

  /**
   * Simulates a supervisor: starts another process after a while if no process has a needed role.
   */
  #startAgain(): void {
    const { missing, schedule, random, isWhole } = this.#environment
    if (missing.length === 0) {
      this.#startsAtMs = null
      return
    }
    this.#startsAtMs ??= schedule.nowMs + 1000 * random.below(AWAY_S_MAX)
    if (!isWhole && schedule.nowMs < this.#startsAtMs) return
    for (const role of missing) this.#environment.start(role)
    this.#startsAtMs = null
  }

  async until(what: string, isSo: () => Promise<boolean>, withinMs: number): Promise<void> {
    const { schedule } = this.#environment
    const end = schedule.nowMs + withinMs - this.#skippedMs
    for (let count = 0; ; count++) {
      if (count % 25 === 0 && (await isSo())) return
      if (schedule.nowMs > end + this.#skippedMs)
        throw new Broken(
          `${what}: not within ${withinMs / 1000} simulated seconds: ${await this.pending()}`,
        )
      await this.turn()
    }
  }

  /** Advances the time at once, unless a caller waits for long. */
  async skip(milliseconds: number, isQuiet: () => boolean): Promise<void> {
    for (let count = 0; count < SKIP_TURNS && !isQuiet(); count++) await this.turn()
    if (!isQuiet()) return
    this.#environment.schedule.nowMs += milliseconds
    this.#skippedMs += milliseconds
  }

  /**
   * Whether every network with a scan has a current scanner. The process that scanned a network may
   * have ended; others take the network over only when its lease is over, and until then the
   * platform does not know of new blocks.
   */
  async isFollowed(): Promise<boolean> {
    const scans = await this.#environment.database.query<{ network: string; at: Date }>(
      'select network, updated_at at from network_scans where height is not null',
    )
    return scans.every(({ network, at }) => {
      const everyMs = this.#blocks.find(({ code }) => code === network)?.everyMs ?? 0
      return (
        this.#environment.schedule.nowMs - at.getTime() < FOLLOWED_BLOCKS * everyMs + FOLLOWED_MS
      )
    })
  }

  async pending(): Promise<string> {
    return JSON.stringify(
      await this.#environment.database.query(
        `select kind, asset, state, last_error, attempts, next_run_at, lease_until,
          plan->>'reason' reason from transactions
       where status = 'pending' limit 12`,
      ),
    )
  }
}

interface Parts {
  environment: SimulatedEnvironment
  callers: Callers
  transferLog: TransferLog
  traders: Traders
  people: PolicyPlay
}

async function play(parts: Parts): Promise<void> {
  const { environment, callers, transferLog, traders, people } = parts
  const { random, schedule } = environment
  const stage = new Play(environment)
  for (const role of environment.roles) environment.start(role)

  // Initial phase without faults: creates wallets with coins.
  let isReady = false
  const ready = transferLog
    .begin()
    .then(() => traders.begin())
    .then(() => callers.wallets())
    .then(() => {
      isReady = true
    })
  ready.catch(() => undefined)
  await stage.until('wallets are made', async () => isReady, 3_600_000)
  await stage.until(
    'wallets are funded',
    async () => {
      const row = await environment.database.one<{ count: string }>(
        `select count(*)::text count from ledger_accounts where kind = 'available' and balance > 0`,
      )
      const open = await environment.database.one(
        `select 1 from transactions where status = 'pending'`,
      )
      return !open && Number(row?.count) === environment.callers.length * environment.assets.length
    },
    3_600_000,
  )

  // Faults begin here.
  environment.isWhole = false
  environment.rates = drawFaultRates(random)
  environment.weather.draw()
  environment.externalServices.isStormy = true
  if (traders.isOn) environment.exchange.draw()
  const kinds = FAULTS.filter(() => random.below(2) === 1)
  const goOn = async () => {
    const turns = 5 + random.below(100)
    for (let count = 0; count < turns; count++) await stage.turn()
    if (traders.isOn) environment.exchange.act()
    await people.tick()
    if (random.rarely(NAMED_RATE)) await environment.weatherOracle.named()
    environment.weather.tick()
    if (kinds.length > 0 && random.rarely(500)) await injectFault(environment, random.of(kinds))
  }
  const skip = (milliseconds: number) =>
    stage.skip(milliseconds, () => callers.isQuiet && people.isQuiet)
  for (let action = 0; action < (people.isOn ? GOVERNED_ACTIONS : ACTIONS); action++) {
    if (people.isOn && random.below(2) === 0) {
      const milliseconds = people.act()
      if (milliseconds > 0) await skip(milliseconds)
    } else if (traders.isOn && random.below(2) === 0)
      for (let count = 0; count < ORDERS_AT_ONCE; count++) traders.act()
    else if (transferLog.products.size > 0 && random.below(people.isOn ? 6 : 3) === 0)
      transferLog.act()
    else act(environment, callers)
    await goOn()
  }
  // Blocks are made, and some contain the requested transactions. Part of the work also ends while
  // faults continue.
  for (let left = random.below(GOING_ON_MAX); left > 0; left--) await goOn()

  // All faults end here, and all work must finish.
  environment.isWhole = true
  environment.rates = NO_FAULTS
  environment.externalServices.isStormy = false
  environment.externalServices.risks.clear()
  environment.nodeFaults.heal()
  environment.weather.heal()
  environment.exchange.heal()
  await environment.database.query(REFILLED)
  // A paused process has not seen recent changes, and there may be no other process to see them.
  const isAwake = () =>
    environment.instances.every(({ actor }) => actor.pausedUntilMs <= schedule.nowMs)
  await stage.until(
    'everything ends',
    async () => {
      if (!callers.isQuiet || !isAwake()) return false
      if (
        await environment.database.one('select 1 from frozen_addresses where unfrozen_at is null')
      ) {
        transferLog
          .unfreeze()
          .catch((error: unknown) =>
            environment.problems.push(`unfreezing: ${String((error as Error).stack)}`),
          )
        return false
      }
      if (!(await people.settle(skip))) return false
      return !(await environment.database.one(AT_WORK))
    },
    HEALED_MS_MAX,
  )
  // A repeated request gets the original response.
  for (const wanted of callers.wanted.slice(0, REPLAYED_MAX)) void callers.pay(wanted)
  traders.again()
  // A request that was refused during faults may be accepted now. A rule may forward the last
  // deposit only after everything else has ended.
  const isQuiet = async () =>
    callers.isQuiet && (await people.settle(skip)) && !(await environment.database.one(AT_WORK))
  do {
    await stage.until('what came late ends', isQuiet, HEALED_MS_MAX)
    // Blocks continue, to check that final results stay final.
    const calmUntil = schedule.nowMs + CALM_MS
    while (schedule.nowMs < calmUntil) await stage.turn()
  } while (!(await isQuiet()) || !(await stage.isFollowed()))
  environment.storyLength = schedule.trace.length
  const problems = [
    ...environment.problems,
    ...(await check(environment, callers, transferLog)),
    ...(await environment.weatherOracle.wrong()),
    ...(await wrongInTrading(environment, traders)),
    ...(await wrongUnderPolicy(environment, callers)),
  ]
  environment.problems.length = 0
  if (problems.length > 0) throw new Broken(problems.join('\n'))
}

function act(environment: SimulatedEnvironment, callers: Callers): void {
  const { random } = environment
  const submitted = callers.wanted.filter(({ id }) => id !== null)
  const what = submitted.length === 0 ? 0 : random.below(8)
  if (what < 5) {
    const wanted = callers.want()
    // Sends the request twice concurrently.
    if (random.rarely(200)) void callers.pay(wanted)
    return
  }
  const old = random.of(submitted)
  if (what === 5) return void callers.pay(old)
  environment.noted(what === 6 ? 'a transfer was cancelled' : 'a transfer was sped up')
  void callers
    .change(old, what === 6 ? 'cancel' : 'speed-up')
    .catch((error: unknown) =>
      environment.lines.push(`change failed: ${String((error as Error).stack)}`),
    )
}
