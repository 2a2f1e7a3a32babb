import type { PolicyDocument } from '@custody/policy'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import type { Database } from '../../../core/database/pool.ts'
import { surroundingsOf, type Surroundings } from '../../../custody/policies/lint-surroundings.ts'
import { argument, OperatorError, type Command } from '../command.ts'
import { callPlatform, localSigners } from '../connect.ts'
import { personsOf, policyViews } from './nodes.ts'

/** Returns what the platform knows around documents of a workspace. */
export const policySurroundings: Command<{
  database: Database
  checkout: { base: string }
}> = async (services, input) => {
  const workspace = await services.database.one<{ id: string }>(
    'select id from workspaces where name = $1',
    [argument(input, 'workspace') ?? ''],
  )
  const { panelOrigins, enrolled } = await surroundingsOf(services, workspace?.id ?? '')
  return { panel_origins: panelOrigins, enrolled }
}

/** Returns the result, or null if what it needs does not run on this machine. */
async function orNull<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof OperatorError) return null
    throw error
  }
}

/** Returns the API keys that these nodes have enrolled with the full role, and their persons. */
async function enrolledAt(
  signers: readonly NodePeer[],
  workspace: string,
): Promise<Pick<Surroundings, 'enrolled' | 'persons'> | null> {
  const { views } = await policyViews(signers, workspace)
  const lists = views.flatMap(({ api_keys: keys }) => (keys === undefined ? [] : [keys]))
  if (lists.length === 0) return null
  return { enrolled: [...new Set(lists.flat())].sort(), persons: personsOf(views) }
}

/**
 * Returns what is known on this machine around a document: the origins of the control panel from the
 * platform, and the API keys from the signer nodes, or from the platform if no node runs here. Null is
 * what is not known, so that the check is reported as left out.
 * @param home data folder of the platform; null: the command runs on the host of a node
 * @param signers nodes of this machine; undefined: those of the data folder
 */
export async function surroundings(
  home: string | null,
  { workspace }: Pick<PolicyDocument, 'workspace'>,
  signers?: readonly NodePeer[],
): Promise<Surroundings> {
  const platform =
    home === null
      ? null
      : ((await orNull(async () => callPlatform(home, 'policy surroundings', { workspace }))) as {
          panel_origins: string[]
          enrolled: string[]
        } | null)
  const atNodes = await orNull(async () =>
    enrolledAt(signers ?? (home === null ? [] : localSigners(home)), workspace),
  )
  return {
    panelOrigins: platform?.panel_origins ?? null,
    ...(atNodes ?? { enrolled: platform?.enrolled ?? null }),
  }
}
