import { RpcMismatch, RpcRefused, type Network } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'

/**
 * Signed bytes of a transaction of our own, which are known before the chain shows them; null: it
 * is not ours.
 */
export async function ownTransaction(
  database: Queryable,
  network: Network,
  txid: string,
): Promise<string | null> {
  const own = await database.one<{ signed: string | null }>(
    'select signed from chain_transactions where network = $1 and hash = $2',
    [network.code, txid],
  )
  return own?.signed ?? null
}

/** More unreadable coins than that are the endpoint's trouble, and no coin's. */
const UNREADABLE_MAX = 16

/**
 * `previous`: the transactions of the foreseen coins. `unreadable`: why coins are left out, by
 * outpoint.
 */
export interface Readable {
  previous: Map<string, string>
  unreadable: Map<string, string>
}

const outpointOf = ({ txid, vout }: { txid: string; vout: number }): string => `${txid}:${vout}`

export const isReadable =
  (unreadable: ReadonlyMap<string, string>) =>
  (coin: { txid: string; vout: number }): boolean =>
    !unreadable.has(outpointOf(coin))

/**
 * Chooses coins, and chooses again without those whose transaction the endpoint does not show, or
 * that no signer node would sign for: one of them must not keep the wallet from paying with others.
 * Asked before any lock is held: the chain may be slow.
 * @param choose coins among those that are left; null: they do not suffice
 * @param problemOf why a coin cannot be spent, or null
 * @throws RpcUnavailable where the endpoint is away: that is no coin's trouble
 */
export async function readCoins<Coin extends { txid: string; vout: number }>(
  choose: (unreadable: ReadonlyMap<string, string>) => Promise<readonly Coin[] | null>,
  ask: (txid: string) => Promise<string>,
  problemOf: (coin: Coin, previous: string) => string | null,
): Promise<Readable> {
  const previous = new Map<string, string>()
  const unreadable = new Map<string, string>()
  for (;;) {
    const before = unreadable.size
    for (const coin of (await choose(unreadable)) ?? []) {
      let problem: string | null
      try {
        const known = previous.get(coin.txid) ?? (await ask(coin.txid))
        previous.set(coin.txid, known)
        problem = problemOf(coin, known)
      } catch (error) {
        if (
          !(error instanceof RpcRefused || error instanceof RpcMismatch) ||
          unreadable.size >= UNREADABLE_MAX
        )
          throw error
        problem = error.message
      }
      if (problem !== null) unreadable.set(outpointOf(coin), problem)
    }
    if (unreadable.size === before || unreadable.size > UNREADABLE_MAX)
      return { previous, unreadable }
  }
}

/**
 * What coins come from, each transaction once. Asked for before any lock is held: the chain may be
 * slow.
 */
export async function previousOf(
  coins: readonly { txid: string }[],
  ask: (txid: string) => Promise<string>,
): Promise<Map<string, string>> {
  const previous = new Map<string, string>()
  for (const { txid } of coins) if (!previous.has(txid)) previous.set(txid, await ask(txid))
  return previous
}
