import { fail } from '../../core/engine/chain.ts'
import { receiptsOf } from '../../core/engine/request.ts'
import type { Kind } from '../../core/engine/services.ts'
import { releaseFloat } from '../gas-tanks/float.ts'
import { releaseTankFee, reclaimEnergy } from '../gas-tanks/energy-loan.ts'
import { platformFee } from '../prepaid-fee/fees.ts'
import { priceStaking, stepRefusal } from './build.ts'
import { giveBackStake, leftOver } from './fail.ts'
import { nextRecorded } from './recorded.ts'
import { settleStaking } from './settle.ts'
import { actionOf, stakingOf, type StakingKind } from './steps.ts'

/**
 * A stake, an unstake or a release: consecutive calls to the chain, requested by a caller or by an
 * operator's order.
 */
export const staking: Kind<StakingKind> = {
  ...platformFee,
  action: (row) => actionOf(stakingOf(row)),
  refusal: stepRefusal,
  price: priceStaking,
  async recorded(services, row) {
    if (row.plan.adopted_steps === undefined) return null
    const hash = await nextRecorded(services, row)
    if (hash !== null) return { hash }
    return row.plan.adopted === undefined
      ? null
      : fail('its next call was never signed, and its request is no longer available')
  },
  async purpose(services, row) {
    if (row.plan.order !== undefined) return { kind: 'tank-stake', order: row.plan.order }
    return {
      kind: 'stake',
      step: actionOf(stakingOf(row)).kind,
      ...(await receiptsOf(services, row.request, 'transactions', row.id)),
    }
  },
  async settle(services, tx, row, o) {
    if (!o.staking) throw new Error('the chain does not report the result of a staking call')
    await settleStaking(services, tx, row, stakingOf(row), { ...o, staking: o.staking })
  },
  async release(services, tx, row, reason) {
    const under = stakingOf(row)
    await giveBackStake(tx, row, under)
    await reclaimEnergy(services, tx, row)
    await (row.wallet_id === null ? releaseTankFee(tx, row) : releaseFloat(tx, row))
    const isPartial = under.at > 0
    return {
      ...(isPartial ? { state: 'PARTIAL' as const } : {}),
      reason: `${reason}; ${leftOver(under)}`,
      fee: BigInt(row.plan.fees_paid ?? '0'),
      // The fee of a stake whose first call is in a block is not refunded.
      ...(row.platform_fee && !isPartial ? { plan: { refunded: '1' } } : {}),
    }
  },
}
