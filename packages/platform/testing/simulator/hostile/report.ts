/** Result of a run with a hostile platform. */
export interface Hostile {
  failure: string | null
  draws: readonly number[]
  count: number
  signed: number
  refusals: ReadonlyMap<string, number>
  faults: ReadonlyMap<string, number>
  asks: readonly string[]
}
