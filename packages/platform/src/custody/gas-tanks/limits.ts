import type { Queryable } from '../../core/database/pool.ts'

/**
 * A workspace's own limits on the fees that its gas tank pays, in the smallest native unit; null:
 * only the network's limits apply.
 */
export interface TankLimits {
  /** Maximum fee of one transaction. */ feeCap: bigint | null
  /** Wei per gas, or sun per unit of energy or bandwidth. */ maxGasPrice: bigint | null
}

export async function tankLimits(
  database: Queryable,
  workspaceId: string,
  network: string,
): Promise<TankLimits> {
  const row = await database.one<{ fee_cap: string | null; max_gas_price: string | null }>(
    `select fee_cap::text, max_gas_price::text from gas_tanks where workspace_id = $1
      and network = $2`,
    [workspaceId, network],
  )
  const wide = (text: string | null | undefined) =>
    text === null || text === undefined ? null : BigInt(text)
  return { feeCap: wide(row?.fee_cap), maxGasPrice: wide(row?.max_gas_price) }
}
