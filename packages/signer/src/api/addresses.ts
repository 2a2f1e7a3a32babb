import { z } from 'zod'
import { Refusal } from '../errors.ts'
import type { NodeContext } from '../node-context.ts'
import { ADDRESSES_MOST } from '../store/address-marks.ts'

export const addressesBodySchema = z.strictObject({
  workspace: z.string().min(1).max(128),
  network: z.string().min(1).max(32),
  sub_account: z.int().min(1).max(0x7fffffff),
  below: z.int().min(1).max(ADDRESSES_MOST),
})

/**
 * `POST /addresses`: records that the deposit addresses of a sub-account below an index exist, so that
 * they count as own addresses. It can only restrict what a policy allows.
 * @returns `below`: the recorded mark
 * @throws Refusal `NETWORK_MISMATCH` or `NOT_ENROLLED` for an unknown network or sub-account, `BUDGET`
 *   if too many addresses are announced within a day
 */
export function announceAddresses(
  { store, registry }: Pick<NodeContext, 'store' | 'registry'>,
  mark: z.infer<typeof addressesBodySchema>,
): { below: number } {
  const { workspace, network, sub_account: sub, below } = mark
  const { state } = store
  if (!registry.network(network))
    throw new Refusal('NETWORK_MISMATCH', `The network ${network} is not in this node's registry`)
  if (!state.subAccountIndexes.get(workspace)?.has(sub))
    throw new Refusal('NOT_ENROLLED', `No sub-account has the index ${sub}`)
  const known = state.addressMarks.get(workspace, network, sub)
  if (below <= known) return { below: known }
  const most = state.addressMarks.most(workspace, network, sub, store.clock())
  if (below > most)
    throw new Refusal('BUDGET', `below: must be at most ${most} today, and is ${below}`)
  store.append('address-mark', mark)
  return { below }
}
