import { hasRealCoins } from '@custody/chains/mode'
import type { Queryable } from '../../core/database/pool.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
}

const LOCAL_PREPAID_MICRO_USD = 100_000n * 1_000_000n

/** Pattern of the names of workspaces and sub-accounts. */
export const WORKSPACE_NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._@-]{0,99}$/u

/**
 * Returns the id of a workspace, and creates the workspace if it does not exist. On local chains a
 * new workspace has prepaid fees.
 */
export async function ensureWorkspace(
  services: Services,
  tx: Queryable,
  name: string,
): Promise<string> {
  const made = await tx.one<{ id: string }>(
    'insert into workspaces (name) values ($1) on conflict do nothing returning id',
    [name],
  )
  // The lock is not "for update", which would block every statement that writes a row referencing
  // the workspace.
  const workspace = (await tx.one<{ id: string }>(
    'select id from workspaces where name = $1 for no key update',
    [name],
  )) as { id: string }
  if (made) {
    const day = new Date(services.environment.now()).toISOString().slice(0, 10)
    await tx.query(
      'insert into prepaid_accounts (workspace_id, tier, decided_on) values ($1, $2, $3)',
      [workspace.id, services.settings.prepaidTiers[0]?.name, day],
    )
    if (!hasRealCoins(services.settings.network)) {
      await tx.query('select prepaid_adjust($1, $2, $3, 0)', [
        workspace.id,
        `initial:${workspace.id}`,
        LOCAL_PREPAID_MICRO_USD.toString(),
      ])
    }
  }
  return workspace.id
}
