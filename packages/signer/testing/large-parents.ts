import type { UnsignedTransaction } from '@custody/chains'
import type { SignedRequest } from '@custody/request-auth'
import { Transaction } from 'bitcoinjs-lib'
import {
  BTC,
  btc,
  funding,
  SINK_BTC,
  transfer,
  type Caller,
  type Workspace,
} from './signer-cluster.ts'

const COIN = 100_000_000n
/** Path of the address that owns the coins. */
export const PATH = [1, BTC.chain_index, 0]

/** Creates an order that spends one coin of each of `count` transactions of about `bytes` bytes. */
export async function spendingParents(
  workspace: Workspace,
  caller: Caller,
  { count, bytes }: { count: number; bytes: number },
): Promise<{ request: SignedRequest; unsigned: UnsignedTransaction }> {
  const parents = Array.from({ length: count }, (): Transaction => {
    const transaction = funding(workspace, [{ path: PATH, value: COIN }])
    for (let at = 0; at < bytes / 31; at++)
      transaction.addOutput(Buffer.from(`0014${'11'.repeat(20)}`, 'hex'), 1n)
    return transaction
  })
  const amount = COIN * BigInt(count) - 10_000n
  return {
    request: await transfer(caller, {
      asset: 'BTC',
      amount: Number(amount) / 1e8,
      destination_address: SINK_BTC,
    }),
    unsigned: btc(workspace, {
      inputs: parents.map((each) => ({ funding: each, output: 0, path: PATH })),
      amount,
    }),
  }
}
