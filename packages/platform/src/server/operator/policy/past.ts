import { loadRegistry } from '@custody/chains'
import type { Act, PastAct, PolicyDocument } from '@custody/policy'
import {
  actsOfForwards,
  actsOfTransfers,
  type PastForward,
  type PastTransfer,
} from '../../../custody/policies/past-acts.ts'
import { actsOfRules, type StandingRule } from '../../../custody/policies/standing-rules.ts'
import { callPlatform } from '../connect.ts'

/** What a workspace did, as the platform reports it. */
export interface History {
  /** Transfers and refunds, newest first. */
  acts: PastAct[]
  /** Forwards of standing rules, newest first. */
  forwarded: PastAct[]
  /** API keys that may sign requests. */
  apiKeys: string[]
  /** Assets of the wallets. */
  assets: string[]
  /** The smallest forward of each standing rule that may forward. */
  forwards: Act[]
}

/** Queries the platform for the past transfers and forwards of a workspace. */
export async function historyOf(
  home: string,
  { workspace, mode }: Pick<PolicyDocument, 'workspace' | 'mode'>,
  limits: { last?: string; days?: string },
): Promise<History> {
  const { transfers, forwarded, api_keys, assets, rules } = (await callPlatform(
    home,
    'policy history',
    {
      workspace,
      ...limits,
    },
  )) as unknown as {
    transfers: PastTransfer[]
    forwarded: PastForward[]
    api_keys: string[]
    assets: string[]
    rules: StandingRule[]
  }
  const registry = loadRegistry(mode)
  return {
    acts: actsOfTransfers(registry, workspace, transfers),
    forwarded: actsOfForwards(registry, workspace, forwarded),
    forwards: actsOfRules(registry, workspace, rules),
    apiKeys: api_keys,
    assets,
  }
}
