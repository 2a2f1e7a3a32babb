import { withTimeout } from '../../engine/with-timeout.ts'
import type { Environment } from '../../environment.ts'
import type { CoinChain } from './chain.ts'
import { DEFAULT_LEVEL } from '../../engine/chain.ts'
import type { ChainClient, Payable } from '@custody/chains'

/** Maximum age in milliseconds of a fee rate that is shown without waiting for a newer one. */
const SHOWN_MS = 600_000

/**
 * Returns a recent fee rate of the default level in the chain's integer unit; null if none is known and
 * the chain fails or does not respond in time. A caller only waits if the known rate is old.
 */
export async function rateSoon({
  context: { environment },
  rates,
}: {
  context: { environment: Pick<Environment, 'sleep'> }
  rates: CoinChain<ChainClient>['rates']
}): Promise<bigint | null> {
  const asked = rates().then((levels) => levels[DEFAULT_LEVEL])
  const known = rates.known(SHOWN_MS)
  if (known === null) return withTimeout<bigint | null>(environment, asked, null)
  asked.catch(() => undefined)
  return known[DEFAULT_LEVEL]
}

/**
 * Limits what the coins can pay by the wallet's balance, parts of which are reserved for transfers that
 * have not chosen their coins yet.
 * @param free the part of the available balance that is not frozen
 * @returns 0 if the chain allows no payment of so little
 */
export function payableFrom({ amount, fee, least }: Payable, free: bigint): bigint {
  const left = free - fee
  const most = amount < left ? amount : left
  return most < least ? 0n : most
}
