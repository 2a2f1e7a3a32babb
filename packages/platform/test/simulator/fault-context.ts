import type { Chance } from './chance.ts'
import type { Odds } from './odds.ts'
import type { Schedule } from './schedule.ts'

/** What the simulated faults draw from, and where they record that one happened. */
export interface FaultContext {
  readonly chance: Chance
  readonly schedule: Schedule
  readonly odds: Odds
  /** @param kind in the past tense, such as "a node refused" */
  noted(kind: string): void
}
