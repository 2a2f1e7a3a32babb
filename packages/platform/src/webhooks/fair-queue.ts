/**
 * What may be sent at the same time. A receiver that hangs holds its own places and nobody else's;
 * one that fails has less of them; and all that fail together leave the greater part to those that
 * work.
 */
export const SLOTS = {
  webhook: 8,
  failingWebhook: 1,
  again: 1,
  workspace: 32,
  failing: 64,
  all: 256,
} as const

/** A webhook for which something waits. */
export interface Queue {
  webhook: string
  workspace: string
  failures: number
  /** What is under way, of first tries and of later ones, in every process. */
  inFlight: { fresh: number; again: number }
  /** What could be sent now, no more than its places. */
  waits: { fresh: number; again: number }
}

/** How many first and later tries of a webhook may begin now. */
export interface Share {
  webhook: string
  workspace: string
  fresh: number
  again: number
}

/**
 * Shares the free places among the webhooks that wait for them, one each in turn, those with the
 * least under way first. Later tries have places of their own: they neither wait for first ones nor
 * hold them up.
 * @param o.inFlight what this process has under way, of it to webhooks that fail @param
 *   o.ofWorkspace by workspace, in every process
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

/** The lane that has room for one more, first tries before later ones. */
function laneOf({ failures, inFlight, waits }: Queue, share: Share): 'fresh' | 'again' | null {
  const freshMax = failures > 0 ? SLOTS.failingWebhook : SLOTS.webhook
  if (share.fresh < waits.fresh && inFlight.fresh + share.fresh < freshMax) return 'fresh'
  return share.again < waits.again && inFlight.again + share.again < SLOTS.again ? 'again' : null
}
