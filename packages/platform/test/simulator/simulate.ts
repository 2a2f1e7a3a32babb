import { audit } from '../../src/audit/audit.ts'
import { Chance } from './chance.ts'
import { Callers, type Wanted } from './callers.ts'
import { Instance } from './instance.ts'
import type { Ground } from './ground.ts'
import { CALM, drawOdds } from './odds.ts'
import { World } from './world.ts'

/** What a simulation has shown. */
export interface Report {
  seed: number
  /** Null: all held. */
  failure: string | null
  draws: readonly number[]
  networks: readonly string[]
  steps: number
  transfers: number
  ends: Record<string, number>
  faults: ReadonlyMap<string, number>
  /** What happened until everything had ended; the oracle's own looks are not part of it. */
  trace: readonly string[]
  lines: readonly string[]
}

/** Longest that everything may take once the world is whole again, in simulated time. */
const HEALED_MS_MAX = 6 * 3_600_000
const STEPS_MAX = 60_000
const ACTIONS = 14
/** So long blocks go on after everything has ended. */
const CALM_MS = 20_000

class Broken extends Error {}

/** Plays one seed. What it finds is in the report; it throws only where the simulator itself is at fault. */
export async function simulate(ground: Ground, seed: number, given: readonly number[] | null = null): Promise<Report> {
  const chance = new Chance(seed, given)
  const world = new World(ground, seed, chance)
  const callers = new Callers(world)
  let failure: string | null = null
  try {
    await world.open(ground)
    await play(world, callers)
  } catch (error) {
    failure = error instanceof Broken ? error.message : String((error as Error).stack)
  }
  const ends: Record<string, number> = {}
  try {
    for (const { state } of await world.database.query<{ state: string }>(`select state from transactions where kind = 'WITHDRAWAL'`)) {
      ends[state] = (ends[state] ?? 0) + 1
    }
  } finally {
    await world.close()
  }
  return {
    seed, failure, draws: chance.draws, networks: world.networks.map(({ place }) => place.code), steps: world.schedule.steps, transfers: callers.wanted.length, ends, faults: world.faults,
    trace: world.schedule.trace.slice(0, world.storyLength), lines: world.lines,
  }
}

class Play {
  readonly #world: World
  readonly #blocks: { code: string; nextMs: number; everyMs: number }[]

  constructor(world: World) {
    this.#world = world
    this.#blocks = world.networks.map(({ place }) => ({ code: place.code, nextMs: world.schedule.nowMs, everyMs: place.blockMs }))
  }

  /** One thing happens, or time passes; blocks come when their time is there. */
  async turn(): Promise<void> {
    const { schedule } = this.#world
    for (const block of this.#blocks) {
      if (schedule.nowMs < block.nextMs) continue
      block.nextMs = schedule.nowMs + block.everyMs
      await this.#world.control({ command: 'mine', network: block.code, blocks: 1 })
    }
    if (this.#world.instances.length === 0) this.#world.start()
    if (schedule.steps > STEPS_MAX) throw new Broken(`it does not end: ${schedule.steps} steps: ${await this.pending()}`)
    await schedule.step(Math.min(...this.#blocks.map(({ nextMs }) => nextMs)))
  }

  async until(what: string, isSo: () => Promise<boolean>, withinMs: number): Promise<void> {
    const { schedule } = this.#world
    const end = schedule.nowMs + withinMs
    for (let count = 0; ; count++) {
      if (count % 25 === 0 && await isSo()) return
      if (schedule.nowMs > end) throw new Broken(`${what}: not within ${withinMs / 1000} simulated seconds: ${await this.pending()}`)
      await this.turn()
    }
  }

  async pending(): Promise<string> {
    return JSON.stringify(await this.#world.database.query(
      `select kind, asset, state, last_error, attempts, next_run_at, lease_until, plan->>'reason' reason from transactions
       where status = 'pending' limit 12`))
  }
}

async function play(world: World, callers: Callers): Promise<void> {
  const { chance, schedule } = world
  const stage = new Play(world)
  const instances = 1 + chance.below(3)
  for (let count = 0; count < instances; count++) world.start()

  // A calm beginning: wallets with coins in them.
  let isReady = false
  const ready = callers.wallets().then(() => { isReady = true })
  ready.catch(() => undefined)
  await stage.until('wallets are made', async () => isReady, 3_600_000)
  await stage.until('wallets are funded', async () => {
    const row = await world.database.one<{ count: string }>(
      `select count(*)::text count from ledger_accounts where kind = 'available' and balance > 0`)
    const open = await world.database.one(`select 1 from transactions where status = 'pending'`)
    return !open && Number(row?.count) === world.callers.length * world.assets.length
  }, 3_600_000)

  // The storm.
  world.odds = drawOdds(chance)
  const kinds = ['kill', 'end', 'pause', 'reorg', 'drop', 'restart'].filter(() => chance.below(2) === 1)
  for (let action = 0; action < ACTIONS; action++) {
    await act(world, callers)
    const calm = 5 + chance.below(120)
    for (let count = 0; count < calm; count++) await stage.turn()
    if (kinds.length > 0 && chance.rarely(500)) await strike(world, chance.of(kinds))
  }

  // The world is whole again, and everything must come to its end.
  world.odds = CALM
  if (world.instances.length === 0) world.start()
  await stage.until('everything ends', async () => {
    if (!callers.isQuiet) return false
    return !(await world.database.one(`select 1 from transactions where status = 'pending'`))
  }, HEALED_MS_MAX)
  // Blocks go on, so that what is final stays so.
  const calmUntil = schedule.nowMs + CALM_MS
  while (schedule.nowMs < calmUntil) await stage.turn()
  world.storyLength = schedule.trace.length
  await check(world, callers)
}

async function act(world: World, callers: Callers): Promise<void> {
  const { chance } = world
  const known = callers.wanted.filter(({ id }) => id !== null)
  const what = known.length === 0 ? 0 : chance.below(8)
  if (what < 5) {
    const wanted = callers.want()
    // Twice at once.
    if (chance.rarely(200)) void callers.pay(wanted)
    return
  }
  const old = chance.of(known)
  if (what === 5) return void callers.pay(old)
  world.noted(what === 6 ? 'a transfer was cancelled' : 'a transfer was sped up')
  void callers.change(old, what === 6 ? 'cancel' : 'speed-up').catch((error: unknown) => world.lines.push(`change failed: ${String((error as Error).stack)}`))
}

async function strike(world: World, kind: string): Promise<void> {
  const { chance, schedule } = world
  const { network: { code }, place } = chance.of(world.networks)
  const instance = world.instances.length > 0 ? chance.of<Instance>(world.instances) : null
  switch (kind) {
    case 'kill':
      if (!instance) return void world.start()
      world.noted('a process was killed')
      await world.kill(instance)
      if (chance.below(2) === 1 || world.instances.length === 0) world.start()
      return
    case 'end':
      if (!instance) return
      instance.lastCommit = chance.of(['unsent', 'unheard'] as const)
      world.noted(`a process ended at a commit that was ${instance.lastCommit}`)
      if (world.instances.length < 3) world.start()
      return
    case 'restart':
      world.start()
      if (world.instances.length > 3) await world.kill(world.instances[0] as Instance)
      return
    case 'pause':
      if (!instance) return
      world.noted('a process stood still')
      instance.actor.pausedUntilMs = schedule.nowMs + 1000 * (1 + chance.below(200))
      return
    case 'reorg':
      if (place.depthMax === 0) return
      world.noted('a chain was reorganised')
      await world.control({ command: 'reorg', network: code, depth: 1 + chance.below(place.depthMax), drop: chance.below(2) === 1 })
      return
    default: {
      const row = await world.database.one<{ hash: string; network: string }>(
        `select c.hash, c.network from chain_transactions c where c.network = $1 and c.state = 'SIGNED' and c.hash is not null order by c.id limit 1`, [code])
      if (!row) return
      world.noted('a node forgot a transaction')
      await world.control({ command: 'drop', network: code, hash: row.hash }).catch(() => undefined)
    }
  }
}

/** What must hold once everything has ended. */
async function check(world: World, callers: Callers): Promise<void> {
  const { database } = world
  const problems: string[] = []
  const paid = new Map<string, number>()
  for (const { place } of world.networks) {
    const chain = world.devnet.chains.find(({ code }) => code === place.code)
    const { head } = await (chain as NonNullable<typeof chain>).info()
    for (let height = 0; height <= (head?.height ?? -1); height++) {
      for (const { asset, address, amount } of await chain?.paymentsIn(height) ?? []) {
        const name = `${asset} ${address.toLowerCase()} ${amount}`
        paid.set(name, (paid.get(name) ?? 0) + 1)
      }
    }
  }
  for (const wanted of callers.wanted) problems.push(...await judged(world, wanted, paid))
  // The oracle looks with eyes of its own.
  const { services } = new Instance(world, 'oracle')
  const eyes = { ...services, database, environment: { ...services.environment, sleep: async () => undefined } }
  const report = await withSchedule(world, audit(eyes as typeof services))
  if (!report.ok) problems.push(`the audit: ${JSON.stringify(report.differences).slice(0, 1500)}`)
  problems.push(...await withSchedule(world, asBooked(eyes as typeof services)))
  const left = await database.query(
    `select kind, asset, balance::text from ledger_accounts where kind in ('reserved', 'tank_reserved', 'float_reserved') and balance <> 0`)
  if (left.length > 0) problems.push(`something is still reserved: ${JSON.stringify(left)}`)
  const below = await database.query(`select kind, asset, balance::text from ledger_accounts where kind in ('available', 'tank') and balance < 0`)
  if (below.length > 0) problems.push(`a balance is below nothing: ${JSON.stringify(below)}`)
  const open = await database.query(`select state, network, nonce::text from chain_transactions where state in ('BUILT', 'SIGNED', 'INCLUDED')`)
  if (open.length > 0) problems.push(`chain transactions are open: ${JSON.stringify(open)}`)
  if (problems.length > 0) throw new Broken(problems.join('\n'))
}

/** What is asked of chains through the schedule comes while the schedule goes on. */
async function withSchedule<T>(world: World, work: Promise<T>): Promise<T> {
  let isDone = false
  const done = work.finally(() => { isDone = true })
  done.catch(() => undefined)
  while (!isDone) await world.schedule.step(world.schedule.nowMs + 100)
  return done
}

/** What is booked of each transaction is what the chain says of it. */
async function asBooked(services: Instance['services']): Promise<string[]> {
  const problems: string[] = []
  const rows = await services.database.query<{ network: string; hash: string; fee: string; block_hash: string; kind: string }>(
    `select c.network, c.hash, c.fee::text, c.block_hash, t.kind from chain_transactions c join transactions t on t.id = c.transaction_id
     where c.state = 'CONFIRMED'`)
  for (const { network, hash, fee, block_hash: block, kind } of rows) {
    const status = await services.networks.client(network).status(hash)
    const said = status.state === 'included' ? { fee: String(status.fee ?? fee), block: status.blockHash } : { fee: status.state, block: '' }
    if (said.fee !== fee || said.block !== block) problems.push(`${network} ${kind} ${hash}: booked with fee ${fee} in ${block}; the chain says ${said.fee} in ${said.block}`)
  }
  return problems
}

async function judged(world: World, wanted: Wanted, paid: ReadonlyMap<string, number>): Promise<string[]> {
  const { asset, amount, to, units, sequence } = wanted
  const what = `${sequence} (${amount} ${asset})`
  const problems: string[] = []
  const onChain = paid.get(`${asset} ${to.toLowerCase()} ${units}`) ?? 0
  const rows = await world.database.query<{ id: string; status: string; state: string }>(
    `select id, status, state from transactions where kind = 'WITHDRAWAL' and sub_account_id = $1 and sequence_id = $2`,
    [wanted.caller.subAccountId, sequence])
  if (rows.length > 1) problems.push(`${what}: there are ${rows.length} transfers`)
  if (onChain > 1) problems.push(`${what}: it was paid ${onChain} times`)
  const [row] = rows
  if (wanted.refused !== null && !/^(INSUFFICIENT_BALANCE)/.test(wanted.refused)) problems.push(`${what}: it was refused: ${wanted.refused}`)
  if (wanted.id !== null && row?.id !== wanted.id) problems.push(`${what}: it was answered as ${wanted.id} and is ${row?.id}`)
  if (new Set(wanted.answers).size > 1) problems.push(`${what}: the answers differ: ${[...new Set(wanted.answers)].join(' | ')}`)
  if (row && onChain !== (row.status === 'confirmed' ? 1 : 0)) problems.push(`${what}: it is ${row.status} (${row.state}), and the chain has it ${onChain} times`)
  if (!row && onChain > 0) problems.push(`${what}: the chain has it, and the books do not`)
  return problems
}
