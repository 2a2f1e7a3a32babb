import type { SeededRandom } from './seeded-random.ts'
import type { FaultRates } from './probabilities.ts'
import type { Schedule } from './schedule.ts'

/** What the simulated faults draw from, and where they record that one happened. */
export interface FaultContext {
  readonly random: SeededRandom
  readonly schedule: Schedule
  readonly rates: FaultRates
  /** @param kind in the past tense, such as "a node refused" */
  noted(kind: string): void
}
