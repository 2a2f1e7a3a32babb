import { RpcMismatch, RpcRefused, type Network } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'

/**
 * Returns the signed bytes of one of our own transactions, which are known before the chain reports
 * the transaction; null if it is not ours.
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

/**
 * Maximum number of unreadable coins. If there are more, the endpoint is at fault, not the coins.
 */
const UNREADABLE_MAX = 16

/**
 * Result of selecting and reading coins. `previous`: transactions that created the selected coins.
 * `unreadable`: the reason for each excluded coin, by outpoint.
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
 * Selects coins, and selects again without those whose creating transaction the endpoint does not
 * return or that no signer node would sign for. One such coin must not prevent the wallet from
 * paying with others. Called before any lock is held, because the chain may be slow.
 * @param choose selects coins that are not excluded; null if they are not sufficient
 * @param ask returns the transaction with an id
 * @param problemOf returns why a coin cannot be spent, or null
 * @throws RpcUnavailable if the endpoint is unreachable, which is not a problem of a coin
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
        const existing = previous.get(coin.txid) ?? (await ask(coin.txid))
        previous.set(coin.txid, existing)
        problem = problemOf(coin, existing)
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
 * Reads the transactions that created coins, each once. Called before any lock is held, because the
 * chain may be slow.
 */
export async function previousOf(
  coins: readonly { txid: string }[],
  ask: (txid: string) => Promise<string>,
): Promise<Map<string, string>> {
  const previous = new Map<string, string>()
  for (const { txid } of coins) if (!previous.has(txid)) previous.set(txid, await ask(txid))
  return previous
}
