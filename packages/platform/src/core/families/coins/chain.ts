import type { ChainClient, LevelRates, Network } from '@custody/chains'
import type { Chain, ChainContext, Coins } from '../../engine/chain.ts'
import type { Cached } from '../cached.ts'

/** A network whose wallets are sets of coins, as shared by the modules of its family. */
export interface CoinChain<Client extends ChainClient> {
  context: ChainContext
  network: Network
  client: Client
  rates: Cached<LevelRates>
  previous: Coins['previous']
}

type Same = Pick<Chain, 'refusal' | 'feeOfOtherWallet' | 'balance'> & {
  fuelled: null
  stakes: null
}

/**
 * Returns the common behaviour of these networks: a wallet pays its own fees, any address can be
 * paid, and addresses have no account balance.
 */
export function coinWallets(network: Network): Same {
  return {
    refusal: () => Promise.resolve(null),
    feeOfOtherWallet: () => 0n,
    balance: () => Promise.reject(new Error(`${network.code} has coins instead of accounts`)),
    fuelled: null,
    stakes: null,
  }
}
