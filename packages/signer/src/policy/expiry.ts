import { traitsOf, type Expiry, type Network } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { State } from '../store/state.ts'
import type { Subject } from './order.ts'

/**
 * Rule 10: a bounded end, where the chain knows one. A node asks no chain, so that ledgers and slots are measured by its own
 * record: the first end that it sees on a network is free, later ones move no faster than these can. What shares an input or
 * a sequence excludes each other whatever its end; the bound is for the platform's proof that a transaction is dead, without
 * which nothing is given up.
 */
export function assertExpiry(state: State, { decoded, network }: Subject, now: number): void {
  const { expiry } = traitsOf(network)
  if (!expiry) return
  const end = decoded.valid_until
  if (end === undefined) throw new Refusal('EXPIRY', 'The transaction never expires')
  const most = endMost(expiry, network, state.ends.get(network.code), now)
  if (most !== null && end > most) {
    throw new Refusal('EXPIRY', `The transaction is valid until ${expiry.unit} ${end}, and ${most} is allowed`, { most })
  }
}

function endMost(expiry: Expiry, { mode }: Network, highest: { end: number; at: number } | undefined, now: number): number | null {
  if (expiry.unit !== 'second') {
    return highest ? highest.end + expiry.aheadMax + expiry.perSecondMax * Math.max(0, now - Math.floor(highest.at / 1000)) : null
  }
  const { aheadMax, localAheadMax } = expiry
  return mode === 'local' && localAheadMax !== undefined ? Math.max(now, highest?.end ?? 0) + localAheadMax : now + aheadMax
}
