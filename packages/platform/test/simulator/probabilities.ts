import type { SeededRandom } from './seeded-random.ts'

/**
 * How often, in a thousand, each fault comes; drawn for each simulation, so that some have none of
 * a kind and others many. Of chains: not reached, an answer lost, an answer late, an old answer, a
 * head too high, a block without its logs, busy, a broadcast refused. Of nodes: an answer lost, not
 * reached, in mid-round, refused.
 */
export interface FaultRates {
  refused: number
  lost: number
  late: number
  old: number
  ahead: number
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
  old: 0,
  ahead: 0,
  partial: 0,
  busy: 0,
  unwilling: 0,
  nodeLost: 0,
  nodeAway: 0,
  nodeTorn: 0,
  nodeRefuses: 0,
}

/** How often each comes at most. */
const MOST: FaultRates = {
  refused: 120,
  lost: 120,
  late: 60,
  old: 60,
  ahead: 60,
  partial: 200,
  busy: 80,
  unwilling: 200,
  nodeLost: 120,
  nodeAway: 150,
  nodeTorn: 100,
  nodeRefuses: 30,
}

/** Each of the storms has about half of the faults. */
export function drawFaultRates(random: SeededRandom): FaultRates {
  const drawn = { ...NO_FAULTS }
  for (const name of Object.keys(MOST) as (keyof FaultRates)[])
    drawn[name] = random.below(2) === 1 ? random.below(MOST[name]) : 0
  return drawn
}
