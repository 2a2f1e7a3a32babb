import { withTimeout } from '../../engine/with-timeout.ts'
import type { CoinChain } from './chain.ts'
import { DEFAULT_LEVEL } from '../../engine/chain.ts'
import type { ChainClient, Payable } from '@custody/chains'

/**
 * Returns the fee rate of the default level in the chain's integer unit; null if the chain fails or
 * does not respond in time.
 */
export const rateSoon = ({ context, rates }: CoinChain<ChainClient>): Promise<bigint | null> =>
  withTimeout<bigint | null>(
    context.environment,
    rates().then((levels) => levels[DEFAULT_LEVEL]),
    null,
  )

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
