import { decimals, query } from '../wire.ts'
import type {
  ForwardRule,
  ForwardRuleFilter,
  NewForwardRule,
  Page,
  PageQuery,
  TransactionPage,
} from '../types.ts'
import { StakingMethods } from './staking.ts'

/** Standing rules that forward incoming payments. */
export abstract class ForwardingMethods extends StakingMethods {
  /**
   * Creates a standing rule that forwards incoming payments, within a daily cap and until it
   * expires.
   * @param rule `min_amount` and `daily_cap` in whole units of the asset
   */
  async createForwardRule(rule: NewForwardRule): Promise<ForwardRule> {
    return this.request(
      'POST',
      '/dac/v1/auto-forwarding',
      decimals(rule, 'min_amount', 'daily_cap'),
    )
  }

  /** Lists the forward rules of the sub-account, newest first. */
  forwardRules(filter: ForwardRuleFilter = {}): Promise<Page<ForwardRule>> {
    return this.request('GET', `/dac/v1/auto-forwarding${query(filter)}`)
  }

  /** Reads a forward rule by its UUID, with the amount that waits to be forwarded. */
  forwardRule(id: string): Promise<ForwardRule> {
    return this.request('GET', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`)
  }

  /** Pauses a forward rule by its UUID. Incoming payments wait until it is resumed. */
  pauseForwardRule(id: string): Promise<ForwardRule> {
    return this.request(
      'POST',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/pause`,
      undefined,
      { repeatable: true },
    )
  }

  /**
   * Resumes a paused forward rule. Payments that arrived during the pause are forwarded as well.
   * @param id UUID of the rule
   */
  resumeForwardRule(id: string): Promise<ForwardRule> {
    return this.request(
      'POST',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/resume`,
      undefined,
      { repeatable: true },
    )
  }

  /**
   * Deletes a forward rule permanently. The signer nodes record its end, so it cannot be resumed.
   * @param id UUID of the rule
   */
  deleteForwardRule(id: string): Promise<ForwardRule> {
    return this.request(
      'DELETE',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`,
      {},
      { repeatable: true },
    )
  }

  /** Lists the transfers that a rule, given its UUID, has created, newest first. */
  forwards(id: string, page: PageQuery = {}): Promise<TransactionPage> {
    return this.request(
      'GET',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/history${query(page)}`,
    )
  }
}
