import type { LintContext } from '@custody/policy'
import type { Queryable } from '../../core/database/pool.ts'

/** What the platform knows around a document of a workspace. */
export type Surroundings = Pick<LintContext, 'panelOrigins' | 'enrolled' | 'persons'>

/**
 * Returns the origins under which people open the control panel.
 * @param base URL of the platform, as browsers open it
 */
export function panelOrigins(base: string): string[] {
  const { origin, protocol, port } = new URL(base)
  // Passkeys cannot be bound to an IP address, so people open a local panel as localhost.
  return protocol === 'https:' ? [origin] : [...new Set([origin, `http://localhost:${port}`])]
}

/**
 * Returns what documents of a workspace are checked against.
 * @param workspaceId ID of the workspace
 */
export async function surroundingsOf(
  { database, checkout }: { database: Queryable; checkout: { base: string } },
  workspaceId: string,
): Promise<Surroundings> {
  const keys = await database.query<{ api_key: string }>(
    `select u.api_key from api_users u join sub_accounts s on s.id = u.sub_account_id
     where s.workspace_id = $1 and u.revoked_at is null and u.role = 'full' order by u.api_key`,
    [workspaceId],
  )
  return {
    panelOrigins: panelOrigins(checkout.base),
    enrolled: keys.map(({ api_key: key }) => key),
  }
}
