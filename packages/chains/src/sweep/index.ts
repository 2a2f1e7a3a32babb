import { ChainError, type Network } from '../types.ts'
import { cardano } from './cardano.ts'
import { evm } from './evm.ts'
import { solana } from './solana.ts'
import { stellar, xrp } from './tagged.ts'
import { tron } from './tron.ts'
import type { Sweeper } from './types.ts'
import { utxo } from './utxo.ts'

export type { Ask, Found, Left, Place, Plan, Planned, Sweeper } from './types.ts'

const SWEEPERS: Record<string, Sweeper> = { cardano, evm, solana, stellar, tron, utxo, xrp }

/**
 * Returns the sweeper that finds and moves the funds of a network without a database.
 * @throws ChainError `FAMILY`
 */
export function sweeperOf(network: Network): Sweeper {
  const sweeper = SWEEPERS[network.family]
  if (!sweeper)
    throw new ChainError(
      'FAMILY',
      `${network.code}: funds of its family cannot be recovered by this version`,
    )
  return sweeper
}
