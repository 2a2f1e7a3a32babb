import { Refusal } from '../errors.ts'
import type { State } from '../store/state.ts'
import type { Subject } from './order.ts'

/** Stellar: how far beyond this node's clock a transaction may be valid. */
export const SECONDS_MAX = 1800
/** Tron: as far ahead as its own nodes take a transaction. */
export const TRON_SECONDS_MAX = 86_400
/** On a local Tron the operator may move the time of the blocks forward, and nobody's clock moves with it. */
export const TRON_LOCAL_SECONDS_MAX = 400 * 86_400
/** XRP: how far beyond the highest end on record, and beyond what a chain can have closed since (it takes 3 to 4 seconds for one). */
export const LEDGERS_MAX = 100_000
export const LEDGERS_PER_SECOND = 2
/** Cardano: the same for slots, each of which is a second. */
export const SLOTS_MAX = 86_400
export const SLOTS_PER_SECOND = 1

/**
 * Rule 10: a bounded end. A node asks no chain, so that ledgers and slots are measured by its own record: the first end
 * that it sees on a network is free, later ones move no faster than these can. What shares an input or a sequence excludes
 * each other whatever its end; the bound is for the platform's proof that a transaction is dead, without which nothing is given up.
 * Tron's end is a time of its blocks; on a local chain, whose time the operator may move, the record is the measure too.
 * Solana's messages name no end: a recent blockhash ends them after 150 blocks, and the decoder refuses a durable nonce.
 */
export function assertExpiry(state: State, { decoded, network }: Subject, now: number): void {
  if (network.family !== 'stellar' && network.family !== 'xrp' && network.family !== 'tron' && network.family !== 'cardano') return
  const end = decoded.valid_until
  if (end === undefined) throw new Refusal('EXPIRY', 'The transaction never expires')
  if (network.family === 'stellar') {
    if (end > now + SECONDS_MAX) throw new Refusal('EXPIRY', `The transaction is valid until ${end}, more than ${SECONDS_MAX} s ahead`)
    return
  }
  const highest = state.ends.get(network.code)
  if (network.family === 'tron') {
    const most = network.mode === 'local' ? Math.max(now, highest?.end ?? 0) + TRON_LOCAL_SECONDS_MAX : now + TRON_SECONDS_MAX
    if (end > most) throw new Refusal('EXPIRY', `The transaction is valid until ${end}, and ${most} is allowed`, { most })
    return
  }
  if (!highest) return
  const [margin, perSecond, unit] = network.family === 'xrp'
    ? [LEDGERS_MAX, LEDGERS_PER_SECOND, 'ledger'] : [SLOTS_MAX, SLOTS_PER_SECOND, 'slot']
  const most = highest.end + margin + perSecond * Math.max(0, now - Math.floor(highest.at / 1000))
  if (end > most) throw new Refusal('EXPIRY', `The transaction is valid until ${unit} ${end}, and the record allows ${most}`, { most })
}
