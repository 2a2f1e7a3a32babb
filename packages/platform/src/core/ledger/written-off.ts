import type { Queryable } from '../database/pool.ts'
import { lockedBalance, post } from './post.ts'

/** A wallet, as its rows refer to it. */
interface WalletRef {
  workspace_id: string
  wallet_id: string
  asset: string
}

const accountsOf = ({ workspace_id: workspace, wallet_id: wallet, asset }: WalletRef) => {
  const of = { workspace, wallet, asset }
  return { available: { ...of, kind: 'available' }, lost: { ...of, kind: 'written_off' } } as const
}

/**
 * Writes off what a wallet is below zero, after a reorganisation removed a deposit that it had spent.
 * The coins are missing in the address or wallet that it shares with others; the account `written_off`
 * keeps the amount.
 * @param reference of the ledger entry
 * @returns the amount in the smallest unit; 0: the wallet is not below zero
 */
export async function writeOff(
  tx: Queryable,
  wallet: WalletRef,
  reference: string,
): Promise<bigint> {
  const { available, lost } = accountsOf(wallet)
  const balance = await lockedBalance(tx, available)
  if (balance >= 0n) return 0n
  await post(tx, 'written-off', reference, [
    { ...available, amount: -balance },
    { ...lost, amount: balance },
  ])
  return -balance
}

/**
 * Takes what was written off of a wallet out of a deposit that is in a block again: the wallet has
 * already spent it.
 * @param reference of the deposit's entry
 */
export async function repayWrittenOff(
  tx: Queryable,
  wallet: WalletRef,
  amount: bigint,
  reference: string,
): Promise<void> {
  const { available, lost } = accountsOf(wallet)
  // The accounts are locked in the same order as by every other entry of the wallet.
  await lockedBalance(tx, available)
  const owed = -(await lockedBalance(tx, lost))
  const repaid = owed < amount ? owed : amount
  if (repaid === 0n) return
  const postings = [
    { ...available, amount: -repaid },
    { ...lost, amount: repaid },
  ]
  await post(tx, 'written-off-repaid', reference, postings, { overdraw: true })
}
