import type { Network } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'

/** Signed bytes of a transaction of our own, which are known before the chain shows them; null: it is not ours. */
export async function ownTransaction(database: Queryable, network: Network, txid: string): Promise<string | null> {
  const own = await database.one<{ signed: string | null }>(
    'select signed from chain_transactions where network = $1 and hash = $2', [network.code, txid])
  return own?.signed ?? null
}

/** What coins come from, each transaction once. Asked for before any lock is held: the chain may be slow. */
export async function previousOf(coins: readonly { txid: string }[], ask: (txid: string) => Promise<string>): Promise<Map<string, string>> {
  const previous = new Map<string, string>()
  for (const { txid } of coins) if (!previous.has(txid)) previous.set(txid, await ask(txid))
  return previous
}
