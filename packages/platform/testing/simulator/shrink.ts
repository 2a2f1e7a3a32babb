/** Result of a run, and its draws. */
export interface Run {
  failure: string | null
  draws: readonly number[]
}

/**
 * Returns the complexity of a run. A draw of 0 means that nothing unusual happens, so fewer draws
 * and more zeros make a simpler run.
 */
const weight = (draws: readonly number[]): number =>
  draws.reduce((sum, draw) => sum + (draw === 0 ? 0 : 1), 0)

/**
 * Searches for a shorter list of draws that also fails: cuts the end off, then replaces one range
 * after the other with zeros.
 * @param run runs the simulation with these draws
 * @param withinMs limit in milliseconds of real time
 */
export async function shrink<R extends Run>(
  failed: R,
  run: (draws: readonly number[]) => Promise<R>,
  withinMs: number,
): Promise<R> {
  const until = performance.now() + withinMs
  let best = failed
  const better = async (draws: readonly number[]): Promise<boolean> => {
    if (weight(draws) >= weight(best.draws) || performance.now() > until) return false
    const report = await run(draws)
    if (report.failure === null || weight(report.draws) >= weight(best.draws)) return false
    best = report
    return true
  }
  for (let cut = Math.floor(best.draws.length / 2); cut > 8; cut = Math.floor(cut / 2)) {
    while (await better(best.draws.slice(0, best.draws.length - cut)));
  }
  for (
    let span = Math.floor(best.draws.length / 4);
    span > 4 && performance.now() < until;
    span = Math.floor(span / 2)
  ) {
    for (let from = 0; from < best.draws.length && performance.now() < until; from += span) {
      await better(best.draws.map((draw, at) => (at >= from && at < from + span ? 0 : draw)))
    }
  }
  return best
}
