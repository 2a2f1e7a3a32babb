import { CHANGE_INDEX } from '../derivation.ts'
import { RpcRefused, RpcUnavailable, type ChainClient, type ChainTransfer } from '../rpc.ts'
import type { Ask, Place } from './types.ts'

/**
 * Finds the addresses in use of each sub-account. Stops after `gap` unused ones in a row, for which
 * `read` returns null.
 */
export async function usedPlaces<T>(
  { subAccounts, gap, placeAt, notify }: Ask,
  read: (place: Place) => Promise<T | null>,
): Promise<T[]> {
  const used: T[] = []
  for (const subAccount of subAccounts) {
    for (let index = 0, unused = 0; unused < gap; index++) {
      const result = await read(placeAt(subAccount, index))
      unused = result === null ? unused + 1 : 0
      if (result !== null) used.push(result)
    }
    notify(`sub-account ${subAccount}: checked`)
  }
  return used
}

/**
 * Reads the transactions of coins by their ids; if an endpoint refuses one, returns the reason.
 * Coins of a refused transaction are not moved; all others are.
 * @throws RpcUnavailable if the endpoint is unreachable
 */
export async function previousOf(
  coins: readonly { txid: string }[],
  ask: (txid: string) => Promise<string>,
): Promise<{ previous: Record<string, string>; unread?: Record<string, string> }> {
  const previous: Record<string, string> = {}
  const unread: Record<string, string> = {}
  for (const { txid } of coins) {
    if (txid in previous || txid in unread) continue
    try {
      previous[txid] = await ask(txid)
    } catch (error) {
      if (!(error instanceof RpcRefused)) throw error
      unread[txid] = error.message
    }
  }
  return Object.keys(unread).length > 0 ? { previous, unread } : { previous }
}

const BLOCKS_AT_ONCE = 8
const TOLD_EVERY = 1000

export interface CoinAt {
  place: Place
  transfer: ChainTransfer
}

/**
 * Finds the unspent coins at the workspace's addresses by reading blocks one by one, without an
 * address index.
 */
export async function coinsAt(
  { subAccounts, gap, fromHeight, placeAt, notify }: Ask,
  client: ChainClient & { unspent(txid: string, vout: number): Promise<bigint | null> },
): Promise<CoinAt[]> {
  const places = new Map<string, Place>()
  for (const subAccount of subAccounts) {
    for (const index of [...Array.from({ length: gap }, (_, at) => at), CHANGE_INDEX]) {
      const place = placeAt(subAccount, index)
      places.set(place.address, place)
    }
  }
  const { height: tip } = await client.tip()
  const seen: CoinAt[] = []
  for (let from = fromHeight; from <= tip; from += BLOCKS_AT_ONCE) {
    const heights = Array.from(
      { length: Math.min(BLOCKS_AT_ONCE, tip - from + 1) },
      (_, at) => from + at,
    )
    const blocks = await Promise.all(heights.map((height) => client.block(height)))
    for (const [at, block] of blocks.entries()) {
      if (!block)
        throw new RpcUnavailable(
          `the endpoint does not return block ${from + at} of ${tip}: coins in it would be missed`,
        )
      for (const transfer of block.transfers) {
        const place = places.get(transfer.address)
        if (place) seen.push({ place, transfer })
      }
    }
    if (from % TOLD_EVERY < BLOCKS_AT_ONCE) notify(`block ${from} of ${tip}`)
  }
  const coins: CoinAt[] = []
  for (const coin of seen)
    if ((await client.unspent(coin.transfer.txid, coin.transfer.position)) !== null)
      coins.push(coin)
  return coins
}
