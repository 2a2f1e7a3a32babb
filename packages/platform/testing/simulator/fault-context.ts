import type { SeededRandom } from './seeded-random.ts'
import type { FaultRates } from './probabilities.ts'
import type { Schedule } from './schedule.ts'

/** The random generator and the log of the simulated faults. */
export interface FaultContext {
  readonly random: SeededRandom
  readonly schedule: Schedule
  readonly rates: FaultRates
  /**
   * Records that a fault happened.
   * @param kind in the past tense, such as "a node refused"
   */
  noted(kind: string): void
}
