import { createHash } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SimulatedServer } from './setup-mode.ts'
import type { Attack } from './byzantine/attacks.ts'
import { playByzantine } from './byzantine/play.ts'
import { playHostile } from './hostile/play.ts'
import { shrink, type Run } from './shrink.ts'
import { simulate } from './simulate.ts'

/**
 * Result of a seed, in the form in which processes exchange it. `counts` are summed over all seeds.
 */
export interface SeedResult {
  seed: number
  isHeld: boolean
  text: string
  counts: Record<string, number>
  faults: [string, number][]
}

/**
 * Options of simulations besides their seeds. `mode`: a platform with injected faults, a hostile
 * platform with three honest nodes, or an honest platform with a hostile node; `attacks`: those of the
 * hostile node, or null for an honest one; `keepIn`: folder for the data of failures; `draws`: replace
 * those of the seed.
 */
export interface SeedOptions {
  mode: 'faults' | 'hostile' | 'byzantine'
  attacks: readonly Attack[] | null
  shrinkMs: number
  keepIn: string
  draws: readonly number[] | null
}

interface Played extends Run {
  summary: string
  counts: Record<string, number>
  faults: ReadonlyMap<string, number>
  trace: readonly string[]
  lines: readonly string[]
}

async function playFriendly(
  databaseServer: SimulatedServer,
  seed: number,
  draws: readonly number[] | null,
): Promise<Played> {
  const report = await simulate(databaseServer, seed, draws)
  const { steps, transfers, orders, networks, roles, ends, trace } = report
  const made = (roles.includes('api') ? roles : [roles.length]).join(' ')
  const hash = createHash('sha256').update(trace.join('\n')).digest('hex').slice(0, 8)
  return {
    ...report,
    counts: { transfers, orders, steps },
    summary: `${networks.join(' ')}, ${made},${orders > 0 ? ` ${orders} orders,` : ''} ${steps} steps (${hash}), ${JSON.stringify(ends)}`,
  }
}

async function hostile(seed: number, draws: readonly number[] | null): Promise<Played> {
  const report = await playHostile(seed, draws)
  const { count, signed } = report
  const refused = [...report.refusals.values()].reduce((sum, count) => sum + count, 0)
  return {
    ...report,
    counts: { requests: count, signed, refused },
    trace: report.asks,
    lines: [],
    summary: `${count} requests, ${signed} signed, ${refused} refused`,
  }
}

async function byzantine(
  seed: number,
  draws: readonly number[] | null,
  attacks: readonly Attack[] | null,
): Promise<Played> {
  const report = await playByzantine(seed, draws, { attacks })
  const { events, orders, signed } = report
  return {
    ...report,
    counts: { events, orders, signed },
    trace: report.log,
    lines: [],
    summary: `${events} events, ${orders} orders, ${signed} signed`,
  }
}

/** Writes all data about a failure to files. */
function keep(seed: number, { draws, trace, lines }: Played, keepIn: string): string {
  const folder = mkdtempSync(join(keepIn, `custody-seed-${seed}-`))
  writeFileSync(join(folder, 'draws.json'), JSON.stringify(draws))
  writeFileSync(join(folder, 'trace'), trace.join('\n'))
  writeFileSync(join(folder, 'log'), lines.join('\n'))
  return folder
}

export async function playSeed(
  databaseServer: SimulatedServer,
  seed: number,
  { mode, attacks, shrinkMs, keepIn, draws }: SeedOptions,
): Promise<SeedResult> {
  const play = (draws: readonly number[] | null): Promise<Played> => {
    if (mode === 'hostile') return hostile(seed, draws)
    if (mode === 'byzantine') return byzantine(seed, draws, attacks)
    return playFriendly(databaseServer, seed, draws)
  }
  const began = performance.now()
  let played = await play(draws)
  const tookMs = performance.now() - began
  const { counts, faults, summary } = played
  const lines = [`seed ${seed}: ${summary}, ${tookMs.toFixed(0)} ms`]
  const isHeld = played.failure === null
  if (!isHeld) {
    if (shrinkMs > 0) played = await shrink(played, play, shrinkMs)
    lines.push(
      `FAILED: ${played.failure}`,
      `  its draws, what happened and the log: ${keep(seed, played, keepIn)}`,
    )
    const again = mode === 'faults' ? '' : ` --${mode}`
    const only = mode === 'byzantine' ? ` --attacks ${attacks?.join(',') ?? 'none'}` : ''
    lines.push(`  again: npm run simulate -- --seed ${seed}${again}${only}`)
  }
  return { seed, isHeld, text: lines.join('\n'), counts, faults: [...faults] }
}
