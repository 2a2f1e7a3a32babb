import type { Environment } from '../../../core/environment.ts'
import { shared } from '../../../core/engine/shared.ts'
import { withTimeout } from '../../../core/engine/with-timeout.ts'
import { ApiError } from '../../../core/errors.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import { windowsAbove } from '../../../custody/policies/list-windows.ts'
import { policyInForce } from '../../../custody/policies/policy-in-force.ts'
import { nodesOf, type Nodes } from '../health.ts'

interface Services {
  environment: Environment
  signers: SignerNodes
}

/** What the signer nodes report about a workspace's policy. */
export interface PolicyFacts {
  /** Time windows of which more than {@link PERCENT} is used, as `rule, window`. */
  windows: readonly string[]
  /** Suspended keys, as `person/key`. */
  suspended: readonly string[]
  /** Stops of the workspace (null) or of the sub-account. */
  stops: readonly { sub_account: string | null; by: string }[]
}

/** Part of a window's limit above which it needs attention. */
const PERCENT = 80
/**
 * Times in milliseconds for which the responses of the nodes are cached: many people read them after
 * every event.
 */
const STATUS_MS = 5000
const POLICY_MS = 15_000
/** Greatest number of workspaces whose policies are cached. */
const WORKSPACES_MAX = 1000

interface Cache {
  status: () => Promise<Nodes>
  policies: Map<string, () => Promise<PolicyFacts | null>>
}
const caches = new WeakMap<SignerNodes, Cache>()

/** Returns the cache of the nodes of this process. */
function cacheOf({ signers, environment }: Services): Cache {
  const cache = caches.get(signers) ?? {
    status: shared(() => nodesOf({ signers }), STATUS_MS, environment.now),
    policies: new Map(),
  }
  caches.set(signers, cache)
  return cache
}

/** Returns the status of each signer node, which is at most five seconds old. */
export const nodesSoon = (services: Services): Promise<Nodes> => cacheOf(services).status()

/**
 * Returns what the signer nodes report about the policy of a workspace, which is at most fifteen
 * seconds old; null if no two of them respond within two seconds.
 * @param reader names of the workspace and of the sub-account
 */
export async function policyFactsOf(
  services: Services,
  { workspace, subAccount }: { workspace: string; subAccount: string },
): Promise<PolicyFacts | null> {
  const { policies } = cacheOf(services)
  if (policies.size >= WORKSPACES_MAX && !policies.has(workspace)) policies.clear()
  const read =
    policies.get(workspace) ??
    shared(() => readPolicyFacts(services, workspace), POLICY_MS, services.environment.now)
  policies.set(workspace, read)
  const facts = await withTimeout(services.environment, read(), null)
  if (facts === null) return null
  const isHere = (account: string | null) => account === null || account === subAccount
  return { ...facts, stops: facts.stops.filter(({ sub_account: account }) => isHere(account)) }
}

/** Queries the nodes for the policy in force and its windows. */
async function readPolicyFacts(
  { signers }: Services,
  workspace: string,
): Promise<PolicyFacts | null> {
  try {
    const policy = await policyInForce(signers, workspace)
    if (policy === null) return { windows: [], suspended: [], stops: [] }
    const { suspended, stops } = policy
    const windows = await windowsAbove(signers, workspace, PERCENT)
    return { windows, suspended: [...suspended].sort(), stops }
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}
