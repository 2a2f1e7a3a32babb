import { evm as evmBuild } from '@custody/chains'
import { fail, type Prepared, type Task } from '../../engine/chain.ts'
import { lowestFree } from '../../engine/nonce-order.ts'
import { sourcePath } from '../source-path.ts'
import type { Evm } from './context.ts'
import { planFields, planOf, worstOf } from './plan.ts'

/**
 * Prepares a transaction whose gas and price are planned. It takes the lowest free nonce of its
 * account.
 */
export async function prepare(evm: Evm, { row, asset, sweeps }: Task): Promise<Prepared> {
  const { network } = evm
  const plan = planOf(row)
  // A sweep that pays for itself leaves its fee at the address.
  const own = row.plan.own === '1'
  const account = row.source_id as string
  const path = await sourcePath(evm.database, row, network)
  const mined = await evm.client.nonce(account)
  return {
    kind: 'prepared',
    lock: 'account',
    async build(tx, unswept) {
      const amount = sweeps ? unswept - (own ? plan.need : 0n) : BigInt(row.amount)
      if (own && amount < plan.need)
        return fail('the remaining balance is worth less than the fee of a sweep')
      // A nonce whose transaction was given up before any signature is reused, because a gap would
      // block all later transactions.
      const nonce = await lowestFree(tx, row, account, mined)
      const to = row.destination_id as string
      return {
        kind: 'built',
        account,
        nonce,
        worst: worstOf(plan),
        unsigned: evmBuild.buildTransfer(network, {
          asset,
          to,
          amount,
          nonce,
          gas: plan.gas,
          fee: plan.fee,
          path,
        }),
        ...(sweeps ? { amount } : {}),
        ...(own ? { fee: worstOf(plan), plan: { ...planFields(plan), own: '1' } } : {}),
      }
    },
  }
}
