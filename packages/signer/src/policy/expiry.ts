import { hasLocalChains } from '@custody/chains/mode'
import { byMode, traitsOf, type Expiry, type Network } from '@custody/chains'
import { Refusal } from '../errors.ts'
import type { Ends } from '../store/ends.ts'
import type { State } from '../store/state.ts'
import type { Subject } from './order.ts'

/**
 * Rule 10: the expiry of a transaction must be limited, if the chain supports expiries. A node
 * queries no chain. Seconds, and slots of a chain whose first slot is known, are derived from its
 * clock; ledgers and other slots are estimated from the expiries that it has seen
 * (`store/ends.ts`), of which the first is not limited. Transactions that share an input or a
 * sequence number exclude each other whatever their expiry; the limit serves the platform, which
 * gives up a transaction only after it has certainly expired.
 */
export function assertExpiry(state: State, { decoded, network }: Subject, now: number): void {
  const { expiry } = traitsOf(network)
  if (!expiry) return
  const end = decoded.valid_until
  if (end === undefined) throw new Refusal('EXPIRY', 'The transaction never expires')
  const most = endMost(expiry, network, state.ends.get(network.code), now)
  if (most !== null && end > most) {
    throw new Refusal(
      'EXPIRY',
      `The transaction is valid until ${expiry.unit} ${end}, and at most ${most} is allowed`,
      { most },
    )
  }
}

function endMost(
  expiry: Expiry,
  { mode, slot_zero: zero }: Network,
  ends: Ends | undefined,
  now: number,
): number | null {
  if (expiry.unit !== 'second') {
    const reached =
      expiry.unit === 'slot' && zero !== undefined
        ? now - zero
        : (ends?.reachedMost(now, byMode(mode, expiry.perSecondMax)) ?? null)
    return reached === null ? null : reached + expiry.aheadMax
  }
  const { aheadMax, localAheadMax } = expiry
  return localAheadMax !== undefined && hasLocalChains(mode)
    ? Math.max(now, ends?.highest ?? 0) + localAheadMax
    : now + aheadMax
}
