import type { UnsignedTransaction } from '@custody/chains'
import {
  ETH,
  eth,
  pay,
  SINK_ETH,
  transfer,
  type Answer,
  type Caller,
  type Workspace,
} from '../testing/signer-cluster.ts'

/** A payment that two nodes sign. */
export interface Item {
  purpose: unknown
  unsigned: UnsignedTransaction
}
/** Pairs of nodes. The payments of an account always use the same pair, as in the platform. */
export const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
] as const

/** @throws Error if a node did not execute the order */
export const good = (answer: Answer): void => {
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
}

/** Creates payments of one account with sequential nonces; their requests are signed now. */
export const ethPayments = (caller: Caller, count: number): Promise<Item[]> =>
  Promise.all(
    Array.from({ length: count }, async (_, nonce) => ({
      purpose: pay(
        await transfer(caller, { asset: 'ETH', amount: 1, destination_address: SINK_ETH }),
      ),
      unsigned: eth([caller.sub_account, ETH.chain_index, 0], { value: 10n ** 18n, nonce }),
    })),
  )

/**
 * Signs the payments of several accounts: those of one account sequentially, all accounts
 * concurrently. @returns signatures per second, and the waiting time of each in milliseconds
 */
export async function inFlight(
  workspace: Workspace,
  lists: readonly (readonly Item[])[],
): Promise<{ perSecond: number; waitsMs: number[] }> {
  const begun = performance.now()
  const waits = await Promise.all(
    lists.map(async (list, at) => {
      const each: number[] = []
      for (const item of list) {
        const startedAt = performance.now()
        good(await workspace.sign(item.purpose, item.unsigned, PAIRS[at % PAIRS.length]))
        each.push(performance.now() - startedAt)
      }
      return each
    }),
  )
  const waitsMs = waits.flat()
  return { perSecond: (waitsMs.length * 1000) / (performance.now() - begun), waitsMs }
}
