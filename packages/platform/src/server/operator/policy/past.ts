import { loadRegistry } from '@custody/chains'
import type { PastAct, PolicyDocument } from '@custody/policy'
import { actsOfTransfers, type PastTransfer } from '../../../custody/policies/past-acts.ts'
import { callPlatform } from '../connect.ts'

/** What a workspace did, as the platform reports it. */
export interface History {
  /** Newest first. */
  acts: PastAct[]
  /** API keys that may sign requests. */
  apiKeys: string[]
  /** Assets of the wallets. */
  assets: string[]
}

/** Queries the platform for the past transfers of a workspace. */
export async function historyOf(
  home: string,
  { workspace, mode }: Pick<PolicyDocument, 'workspace' | 'mode'>,
  limits: { last?: string; days?: string },
): Promise<History> {
  const { transfers, api_keys, assets } = (await callPlatform(home, 'policy history', {
    workspace,
    ...limits,
  })) as unknown as { transfers: PastTransfer[]; api_keys: string[]; assets: string[] }
  return {
    acts: actsOfTransfers(loadRegistry(mode), workspace, transfers),
    apiKeys: api_keys,
    assets,
  }
}
