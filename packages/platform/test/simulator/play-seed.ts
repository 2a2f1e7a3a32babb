import { createHash } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Ground } from './ground.ts'
import { shrink } from './shrink.ts'
import { simulate, type Report } from './simulate.ts'

/** What is told of a seed, as it is handed from process to process. */
export interface Told { seed: number; isHeld: boolean; text: string; transfers: number; steps: number; faults: [string, number][] }

/** Of a simulation beside its seed. `keepIn`: folder for what is known of failures. `given`: draws in place of the seed's. */
export interface Terms { shrinkMs: number; keepIn: string; given: readonly number[] | null }

/** Everything that is known of a failure, where it can be read at leisure. */
function keep(report: Report, keepIn: string): string {
  const folder = mkdtempSync(join(keepIn, `custody-seed-${report.seed}-`))
  writeFileSync(join(folder, 'draws.json'), JSON.stringify(report.draws))
  writeFileSync(join(folder, 'trace'), report.trace.join('\n'))
  writeFileSync(join(folder, 'log'), report.lines.join('\n'))
  return folder
}

export async function playSeed(ground: Ground, seed: number, { shrinkMs, keepIn, given }: Terms): Promise<Told> {
  const began = performance.now()
  let report = await simulate(ground, seed, given)
  const tookMs = performance.now() - began
  const { transfers, steps } = report
  const hash = createHash('sha256').update(report.trace.join('\n')).digest('hex').slice(0, 8)
  const lines = [`seed ${seed}: ${report.networks.join(' ')}, ${steps} steps (${hash}), ${JSON.stringify(report.ends)}, ${tookMs.toFixed(0)} ms`]
  const faults = [...report.faults]
  const isHeld = report.failure === null
  if (!isHeld) {
    if (shrinkMs > 0) report = await shrink(ground, report, shrinkMs)
    lines.push(`FAILED: ${report.failure}`, `  its draws, what happened and the log: ${keep(report, keepIn)}`)
    lines.push(`  again: npm run simulate -- --seed ${seed}`)
  }
  return { seed, isHeld, text: lines.join('\n'), transfers, steps, faults }
}
