import type { decode, UnsignedTransaction } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import { isConsolidation, type TransactionRow } from './transaction.ts'

/** A signed transaction that may return a part of its coins to its wallet. */
interface Returning {
  hash: string
  unsigned: UnsignedTransaction
  decoded: ReturnType<typeof decode>
  /** Whether another attempt of the same transfer may be mined instead. */
  isContested: boolean
  /** Whether it only returns its coins to the wallet. */
  isCancellation?: boolean
}

/**
 * Records the coin that a signed transaction returns to its wallet: its change, or the only output of a
 * cancellation or a consolidation. It is spendable unless another attempt of the transfer may be mined
 * instead; that of a consolidation is not spendable before it is confirmed.
 * @returns whether there is such a coin
 */
export async function recordChange(
  tx: Queryable,
  row: Pick<TransactionRow, 'kind' | 'workspace_id' | 'network' | 'wallet_id'>,
  { hash, unsigned, decoded, isContested, isCancellation = false }: Returning,
): Promise<boolean> {
  const returned = decoded.change
    ? { ...decoded.change, output: unsigned.change?.output ?? 0 }
    : (isCancellation || isConsolidation(row)) && decoded.payments[0]
      ? { ...decoded.payments[0], output: 0 }
      : null
  if (!returned) return false
  await tx.query(
    `insert into utxos (network, txid, vout, address, wallet_id, value, path_index, origin,
      spendable, contested, workspace_id)
     values ($1, $2, $3, $4, $5, $6, coalesce($9::integer, (select path_index from chain_addresses
       where workspace_id = $7 and network = $1 and address = $4)), 'change', not $8, $8, $7)
     on conflict do nothing`,
    [
      row.network,
      hash,
      returned.output,
      returned.address,
      row.wallet_id,
      returned.amount.toString(),
      row.workspace_id,
      isContested || isConsolidation(row),
      unsigned.change?.path[2] ?? null,
    ],
  )
  return true
}
