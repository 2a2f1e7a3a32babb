import { decode, tron as tronBuild } from '@custody/chains'
import { fail, type Prepared, type Task } from '../../engine/chain.ts'
import { sourcePath } from '../source-path.ts'
import type { Tron } from './context.ts'

/**
 * Prepares a transaction. Nothing excludes another transaction on this chain: the signer nodes sign
 * one for each step.
 */
export async function prepare(tron: Tron, { row, asset, sweeps, action }: Task): Promise<Prepared> {
  const { network, registry } = tron
  const feeLimit = row.plan.fee_limit
  if (feeLimit === undefined)
    throw new Error(`a transaction of the kind ${row.kind} has no fee plan`)
  const account = row.source_id as string
  const own = row.plan.own === '1'
  const need = BigInt(row.plan.need ?? '0')
  const path = await sourcePath(tron.database, row, network)
  const key = await tron.keys.get(row.workspace_id, network.curve)
  // This query comes last, because the validity period starts when the chain responds.
  const reference = await tron.client.reference()
  return {
    kind: 'prepared',
    lock: 'account',
    async build(_tx, unswept) {
      const amount = sweeps ? unswept - (own ? need : 0n) : BigInt(row.amount)
      if (own && amount <= 0n)
        return fail('the remaining balance is worth less than the fee of a sweep')
      const common = { reference, publicKey: key.at(path), path }
      const unsigned = action
        ? tronBuild.buildAction(network, { ...common, ...action })
        : tronBuild.buildTransfer(network, {
            ...common,
            asset,
            to: row.destination_id as string,
            amount,
            feeLimit: BigInt(feeLimit),
          })
      const { valid_until: validUntil } = decode(registry, unsigned, key.at)
      return {
        kind: 'built',
        unsigned,
        account,
        worst: need,
        ...(validUntil === undefined ? {} : { validUntil }),
        ...(sweeps ? { amount } : {}),
        ...(own ? { fee: need, plan: { fee_limit: '0', need: need.toString(), own: '1' } } : {}),
      }
    },
  }
}
