import type { Queryable } from '../../core/database/pool.ts'

/**
 * Adds the omnibus address to a wallet's addresses, marked as not assigned yet. Does nothing if the
 * wallet already has it.
 */
export async function listOmnibus(
  tx: Queryable,
  workspace: string,
  walletId: string,
  network: string,
  address: string,
): Promise<void> {
  await tx.query(
    `insert into wallet_addresses (wallet_id, network, address, handed_out, workspace_id)
      values ($1, $2, $3, false, $4)
     on conflict do nothing`,
    [walletId, network, address, workspace],
  )
}

/** Assigns a wallet's omnibus address, once; returns undefined if it was assigned before. */
export async function handOutOmnibus(
  tx: Queryable,
  workspace: string,
  walletId: string,
  label: string | null,
): Promise<{ id: string; address: string; created_at: Date } | undefined> {
  return tx.one(
    `update wallet_addresses set handed_out = true, label = $2 where workspace_id = $3
      and wallet_id = $1 and not handed_out
     returning id, address, created_at`,
    [walletId, label, workspace],
  )
}
