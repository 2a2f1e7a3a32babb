import { decimals, isGiven, query } from '../wire.ts'
import type { OnceOptions } from '../transport.ts'
import type { NewStake, Stake, Staking } from '../types.ts'
import { AccountMethods } from './accounts.ts'

/** Staking of TRX. */
export abstract class StakingMethods extends AccountMethods {
  /**
   * Locks TRX for a resource. Set `sequence_id`, as for transfers.
   * @param stake `amount` in TRX
   */
  stake(stake: NewStake, options: OnceOptions = {}): Promise<Stake> {
    return this.#stake('stake', stake, options)
  }

  /**
   * Unlocks staked TRX. The resource is released immediately; the TRX can be withdrawn after a
   * cooldown of about 14 days.
   * @param stake `amount` in TRX
   */
  unstake(stake: NewStake, options: OnceOptions = {}): Promise<Stake> {
    return this.#stake('unstake', stake, options)
  }

  /**
   * Withdraws unstaked TRX whose cooldown has ended.
   * @param address that unstaked
   * @param sequenceId makes the request safe to repeat
   */
  releaseUnstaked(address: string, sequenceId?: string, options: OnceOptions = {}): Promise<Stake> {
    const body = { asset: 'TRX', address, sequence_id: sequenceId }
    return this.request('POST', '/dav/v1/release-unstaked', body, {
      repeatable: sequenceId !== undefined,
      ...options,
    })
  }

  /**
   * Returns the TRX that an address has staked, that cool down, and that can be withdrawn.
   * @param address one of the sub-account's own addresses
   */
  staking(address: string): Promise<Staking> {
    return this.request('GET', `/dav/v1/staking${query({ address })}`)
  }

  async #stake(action: 'stake' | 'unstake', stake: NewStake, options: OnceOptions): Promise<Stake> {
    const body = { asset: 'TRX', ...decimals(stake, 'amount') }
    return this.request('POST', `/dav/v1/${action}`, body, {
      repeatable: isGiven(stake.sequence_id),
      ...options,
    })
  }
}
