import type { Report } from './report.ts'

/** A block's height and its time in Unix seconds. */
export interface BlockMark {
  height: number
  time: number
}

const DAY_S = 86_400
/** Maximum age that is searched, in days: the longest outage that a platform should survive. */
const WANTED_DAYS = 30
/**
 * Age in seconds below which an outage of the platform can easily exceed the endpoint's history.
 */
const ENOUGH_S = 7 * DAY_S
/** Age in seconds below which some networks' blocks are gone before they are final. */
const NEEDED_S = 3600
const STEPS_MAX = 14
/** Number of blocks over which the time between two blocks is measured. */
const SAMPLE_BLOCKS = 1000

/** `isAll`: the endpoint returned everything that was requested. */
interface Found {
  oldest: BlockMark
  isAll: boolean
}

/**
 * Finds the oldest block that an endpoint returns, up to {@link WANTED_DAYS} days, by bisection.
 * @param at returns the block of a height, or null if the endpoint does not have it; throws for any
 *   other reason
 */
async function reach(
  head: BlockMark,
  first: number,
  at: (height: number) => Promise<BlockMark | null>,
): Promise<Found> {
  let good = head
  let target = first
  if (head.height - first > SAMPLE_BLOCKS) {
    const near = head.height - SAMPLE_BLOCKS
    const sample = await at(near)
    if (sample) {
      good = sample
      const seconds = Math.max(0.05, (head.time - sample.time) / SAMPLE_BLOCKS)
      target = Math.max(first, head.height - Math.ceil((WANTED_DAYS * DAY_S) / seconds))
      if (target >= near) return { oldest: sample, isAll: true }
    } else target = near
  }
  const far = target === head.height - SAMPLE_BLOCKS ? null : await at(target)
  if (far) return { oldest: far, isAll: true }
  let bad = target
  for (
    let step = 0;
    step < STEPS_MAX && good.height - bad > Math.max(1, (head.height - good.height) / 10);
    step++
  ) {
    const middle = Math.floor((good.height + bad) / 2)
    const result = await at(middle)
    if (result) good = result
    else bad = middle
  }
  return { oldest: good, isAll: false }
}

const spanText = (seconds: number): string =>
  seconds >= 2 * DAY_S
    ? `${(seconds / DAY_S).toFixed(1)} days`
    : seconds >= 7200
      ? `${(seconds / 3600).toFixed(1)} hours`
      : `${Math.max(0, Math.round(seconds / 60))} minutes`

/**
 * Adds the line `history`: the maximum age of a block that the endpoint still returns with all data
 * that a scan reads.
 */
export async function measureHistory(
  report: Report,
  what: string,
  head: BlockMark,
  first: number,
  at: (height: number) => Promise<BlockMark | null>,
): Promise<void> {
  const advice =
    'use an endpoint with a longer history: after a longer outage, a platform cannot catch up'
  await report.check({ code: 'history', what, advice }, async (say) => {
    const { oldest, isAll } = await reach(head, first, at)
    const seconds = head.time - oldest.time
    const from = `the history (${what}) reaches back`
    const where = `block ${oldest.height}, ${head.height - oldest.height} blocks back`
    if (isAll && oldest.height === first) return say.note(`${from} to the first block`)
    if (isAll) return say.note(`${from} at least ${spanText(seconds)} (${where})`)
    const reason = `${from} only ${spanText(seconds)} (${where})`
    if (seconds < NEEDED_S) throw new Error(reason)
    if (seconds < ENOUGH_S) return say.limited(reason)
    return say.note(`${from} ${spanText(seconds)} (${where})`)
  })
}
