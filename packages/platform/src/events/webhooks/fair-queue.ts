/**
 * Maximum numbers of concurrent attempts. A receiver that does not respond only uses the slots of
 * its own webhook; a failing webhook has fewer slots; and all failing webhooks together leave most
 * slots to the others.
 */
export const SLOTS = {
  webhook: 8,
  failingWebhook: 1,
  again: 1,
  workspace: 32,
  failing: 64,
  all: 256,
} as const

/** A webhook with waiting deliveries. */
export interface Queue {
  webhook: string
  workspace: string
  failures: number
  /** Attempts in progress in every process: first attempts and later ones. */
  inFlight: { fresh: number; again: number }
  /** Deliveries that could be sent now, at most as many as there are slots. */
  waits: { fresh: number; again: number }
}

/** Number of first and later attempts of a webhook that may start now. */
export interface Share {
  webhook: string
  workspace: string
  fresh: number
  again: number
}

/**
 * Divides the free slots among the waiting webhooks, one each in turn, starting with those that
 * have the fewest attempts in progress. Later attempts have separate slots, so they neither wait
 * for first attempts nor delay them.
 * @param o `inFlight`: attempts in progress in this process; `failing`: those of them to failing
 *   webhooks; `ofWorkspace`: attempts in progress by workspace, in every process
 */
export function allocateSlots(
  queues: readonly Queue[],
  o: { inFlight: number; failing: number; ofWorkspace: ReadonlyMap<string, number> },
): Share[] {
  let free = SLOTS.all - o.inFlight
  let freeFailing = SLOTS.failing - o.failing
  const used = new Map(o.ofWorkspace)
  const entries = [...queues]
    .sort((a, b) => underWay(a) - underWay(b) || (a.webhook < b.webhook ? -1 : 1))
    .map((queue) => ({
      queue,
      share: { webhook: queue.webhook, workspace: queue.workspace, fresh: 0, again: 0 },
    }))
  for (let isMore = true; isMore;) {
    isMore = false
    for (const { queue, share } of entries) {
      const isFailing = queue.failures > 0
      const inWorkspace = used.get(queue.workspace) ?? 0
      if (free <= 0 || (isFailing && freeFailing <= 0) || inWorkspace >= SLOTS.workspace) continue
      const lane = laneOf(queue, share)
      if (lane === null) continue
      share[lane]++
      free--
      if (isFailing) freeFailing--
      used.set(queue.workspace, inWorkspace + 1)
      isMore = true
    }
  }
  return entries.map(({ share }) => share).filter(({ fresh, again }) => fresh + again > 0)
}

const underWay = ({ inFlight }: Queue): number => inFlight.fresh + inFlight.again

/** Returns the kind of attempt that has a free slot, first attempts before later ones. */
function laneOf({ failures, inFlight, waits }: Queue, share: Share): 'fresh' | 'again' | null {
  const freshMax = failures > 0 ? SLOTS.failingWebhook : SLOTS.webhook
  if (share.fresh < waits.fresh && inFlight.fresh + share.fresh < freshMax) return 'fresh'
  return share.again < waits.again && inFlight.again + share.again < SLOTS.again ? 'again' : null
}
