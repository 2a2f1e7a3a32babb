import type { SeededRandom } from './seeded-random.ts'

/**
 * Rate of each fault, per thousand. The rates are drawn for each simulation, so that a simulation
 * may have no fault of a kind or many. Chains: unreachable, lost response, late response, block
 * without logs, busy, refused broadcast. Nodes: lost response, unreachable, failure during a round,
 * refusal.
 */
export interface FaultRates {
  refused: number
  lost: number
  late: number
  partial: number
  busy: number
  unwilling: number
  nodeLost: number
  nodeAway: number
  nodeTorn: number
  nodeRefuses: number
}

export const NO_FAULTS: FaultRates = {
  refused: 0,
  lost: 0,
  late: 0,
  partial: 0,
  busy: 0,
  unwilling: 0,
  nodeLost: 0,
  nodeAway: 0,
  nodeTorn: 0,
  nodeRefuses: 0,
}

/** Maximum rate of each fault, per thousand. */
const MOST: FaultRates = {
  refused: 120,
  lost: 120,
  late: 60,
  partial: 200,
  busy: 80,
  unwilling: 200,
  nodeLost: 120,
  nodeAway: 150,
  nodeTorn: 100,
  nodeRefuses: 30,
}

/** Draws the fault rates; each simulation has about half of the fault kinds. */
export function drawFaultRates(random: SeededRandom): FaultRates {
  const probabilities = { ...NO_FAULTS }
  for (const name of Object.keys(MOST) as (keyof FaultRates)[])
    probabilities[name] = random.below(2) === 1 ? random.below(MOST[name]) : 0
  return probabilities
}
