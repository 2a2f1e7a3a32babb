import { advance } from '../exchanges/lease.ts'
import { bookDeposit } from '../exchanges/books.ts'
import type { Transfer } from '../exchanges/venue.ts'
import { TRANSFERS } from './transfer.ts'
import { waitOn, type Step } from './wait.ts'

/**
 * Time in milliseconds before the transfer from which the exchange's list is read, because clocks
 * differ.
 */
const BEFORE_MS = 900_000

/** The transaction that carries the transfer on the network. */
interface Carrier {
  status: 'pending' | 'confirmed' | 'failed'
  hash: string | null
  confirmations: number
  failure_reason: string | null
}

/**
 * Returns whether two hashes are the same. Some exchanges write hashes with a prefix or in
 * capitals.
 */
export const sameHash = (one: string | null, other: string | null): boolean =>
  one !== null && other !== null && plain(one) === plain(other)
const plain = (hash: string): string => hash.toLowerCase().replace(/^0x/, '')

/**
 * Returns the exchange's deposit for this output of a transaction, because several outputs may have
 * been paid to the account.
 */
function depositOf(
  deposits: readonly Transfer[],
  hash: string,
  address: string,
  tag: string | null,
): Transfer | undefined {
  const same = deposits.filter((each) => sameHash(each.hash, hash))
  return (
    same.find(
      (each) => each.address === address && (tag === null || each.tag === null || each.tag === tag),
    ) ?? same[0]
  )
}

/**
 * Executes one step of a transfer to an exchange: until a block includes it, and until the exchange
 * credits it.
 */
export async function bringIn({ services, row, account, venue }: Step): Promise<void> {
  const carrier = (await services.database.one<Carrier>(
    `select status, hash, confirmations, failure_reason from transactions where workspace_id = $2
      and id = $1`,
    [row.transaction_id, row.workspace_id],
  )) as Carrier
  if (carrier.status === 'failed') {
    await services.database.transaction((tx) =>
      advance(tx, TRANSFERS, row, {
        state: 'FAILED',
        status: 'failed',
        reason: carrier.failure_reason ?? 'the transfer failed',
        again: null,
      }),
    )
    return
  }
  if (carrier.hash === null || carrier.confirmations === 0)
    return waitOn(services, row, { hash: carrier.hash })
  const deposits = await venue.deposits(row.coin, row.created_at.getTime() - BEFORE_MS)
  const match = depositOf(deposits, carrier.hash, row.address, row.address_tag)
  if (match?.status !== 'done') {
    const reason =
      match?.status === 'failed'
        ? 'the exchange received the coins and does not credit them: check it at the exchange'
        : null
    return waitOn(services, row, {
      hash: carrier.hash,
      ...(match ? { venue_id: match.venueId, reason } : {}),
    })
  }
  await services.database.transaction(async (tx) => {
    await bookDeposit(tx, account, row.id, row.coin, match.amount)
    await advance(tx, TRANSFERS, row, {
      state: 'DONE',
      status: 'completed',
      hash: carrier.hash,
      venue_id: match.venueId,
      credited: match.amount.toString(),
      reason: null,
      last_error: null,
      again: null,
    })
    await tx.query('update exchange_accounts set reconcile_at = $2 where id = $1', [
      account.id,
      tx.now(),
    ])
  })
  services.environment.checkpoint('exchange-transfer.credited')
}
