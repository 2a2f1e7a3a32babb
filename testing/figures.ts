import { spawnSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'

/** Result of a benchmark, with a baseline that was measured in the same run. */
export interface Figure {
  name: string
  /** Unit of `value` and `floor`: `/s`, `ms`, `MB`, … */
  unit: string
  value: number
  /** Baseline in the same unit. Null: `target` applies to the value itself. */
  floor: number | null
  /** Required ratio to the baseline (or, without one, required value): a minimum or a maximum. */
  target?: { atLeast: number } | { atMost: number }
  /** Limiting factor, in a few words. */
  note?: string
}

const amount = (value: number): string =>
  Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3)

/**
 * Prints a result as `name value floor ratio` and records it for the run's JSON file (`npm run
 * bench -- --json FILE`). If a target is missed, the benchmark exits with 1.
 */
export function report({ name, unit, value, floor, target, note }: Figure): void {
  const ratio = floor === null ? null : value / floor
  const judged = ratio ?? value
  const isMet =
    target === undefined ||
    ('atLeast' in target ? judged >= target.atLeast : judged <= target.atMost)
  const aim =
    target === undefined ? '' : 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`
  const cells = [
    name.padEnd(52),
    `${amount(value)} ${unit}`.padStart(14),
    (floor === null ? '–' : `${amount(floor)} ${unit}`).padStart(14),
    (ratio === null ? '–' : ratio.toFixed(3)).padStart(7),
    aim.padStart(8),
    isMet ? '' : 'missed',
    note ?? '',
  ]
  console.log(cells.join('  ').trimEnd())
  const file = process.env['CUSTODY_BENCH_FIGURES']
  if (file) {
    const noted = {
      name,
      unit,
      value,
      floor,
      ratio,
      target: target ?? null,
      met: isMet,
      note: note ?? null,
    }
    appendFileSync(file, `${JSON.stringify(noted)}\n`)
  }
  if (!isMet) process.exitCode = 1
}

/** Returns the median; for an even number of values the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length / 2
  if (sorted.length === 0) throw new Error('the median of nothing')
  return sorted.length % 2 === 1
    ? (sorted[Math.floor(half)] as number)
    : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2
}

/** Returns the value that `share` (0…1) of the values do not exceed. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new Error('a percentile of nothing')
  return [...values].sort((a, b) => a - b)[
    Math.min(values.length - 1, Math.ceil(values.length * share) - 1)
  ] as number
}

/**
 * Measures several functions alternately, round by round, so that a slower machine affects all of
 * them equally.
 * @returns the median of each
 */
export async function interleaved<Name extends string>(
  rounds: number,
  things: Record<Name, () => Promise<number>>,
): Promise<Record<Name, number>> {
  const names = Object.keys(things) as Name[]
  const measured = new Map<Name, number[]>(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const name of names) measured.get(name)?.push(await things[name]())
  }
  return Object.fromEntries(
    names.map((name) => [name, median(measured.get(name) ?? [])]),
  ) as Record<Name, number>
}

/**
 * Pins a process with all its threads to the given processors (counted from 0). Returns false if
 * `taskset` is missing.
 */
export const pin = (pid: number, ...processors: readonly number[]): boolean =>
  spawnSync('taskset', ['-acp', processors.join(','), String(pid)]).status === 0
