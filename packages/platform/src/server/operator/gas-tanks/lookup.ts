import type { Environment } from '../../../core/environment.ts'
import type { Database } from '../../../core/database/pool.ts'
import { isFilling } from '../../../custody/gas-tanks/ensure-tank.ts'
import { OperatorError } from '../command.ts'

interface Services {
  environment: Environment
  database: Database
}

/** Number of checks while a local tank receives its first fill. */
const FILL_CHECKS = 60
const FILL_CHECK_MS = 500

/**
 * Returns the ID of the workspace that the input names.
 * @throws OperatorError if it does not exist
 */
export async function workspaceOf(
  services: Pick<Services, 'database'>,
  input: Record<string, unknown>,
): Promise<string> {
  const row = await services.database.one<{ id: string }>(
    'select id from workspaces where name = $1',
    [String(input['workspace'] ?? '')],
  )
  if (!row)
    throw new OperatorError(
      `--workspace: workspace ${String(input['workspace'] ?? '')} does not exist`,
    )
  return row.id
}

/** Returns the address of a workspace's gas tank; undefined if the tank does not exist. */
export async function addressOfTank(
  services: Pick<Services, 'database'>,
  workspaceId: string,
  network: string,
): Promise<string | undefined> {
  const row = await services.database.one<{ address: string }>(
    'select address from gas_tanks where workspace_id = $1 and network = $2',
    [workspaceId, network],
  )
  return row?.address
}

/** Waits at most 30 seconds until a local tank has received its first fill. */
export async function waitForFirstFill(
  services: Services,
  workspaceId: string,
  network: string,
): Promise<void> {
  for (
    let count = 0;
    count < FILL_CHECKS && (await isFilling(services.database, workspaceId, network));
    count++
  ) {
    await services.environment.sleep(FILL_CHECK_MS)
  }
}
