import { RpcUnavailable } from '@custody/chains'
import type { Database } from '../src/core/database/pool.ts'
import { acceptBlock, contradictionsOf } from '../src/custody/deposits/contradiction.ts'

/**
 * Accepts every block that an endpoint returns instead of a final one, as an operator does who has
 * compared both chains.
 * @returns whether there was one
 */
export async function acceptReorgs(database: Database): Promise<boolean> {
  const contradictions = await contradictionsOf(database)
  for (const [network, contradiction] of contradictions)
    await database.transaction(async (tx) => {
      // In a simulation, a transaction that holds the row ends only after this returns.
      const free = 'select 1 from network_scans where network = $1 for update skip locked'
      if (await tx.one(free, [network])) await acceptBlock(tx, network, contradiction)
    })
  return contradictions.size > 0
}

/** Returns a pass of a scan whose operator accepts every reorganisation at once. */
export const withOperator =
  (database: Database, pass: () => Promise<boolean>) => async (): Promise<boolean> => {
    try {
      return await pass()
    } catch (error) {
      if (!(error instanceof RpcUnavailable) || !(await acceptReorgs(database))) throw error
      return true
    }
  }
