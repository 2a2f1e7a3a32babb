import { OPERATOR, writeAudit } from '../../console-api/people/audit-log.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { OperatorError, type Command } from './command.ts'

interface Services {
  database: Database
  networks: Networks
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000 }
/** Longest time for which endpoints are trusted, in milliseconds. */
const TRUST_MAX_MS = 24 * 3_600_000

/**
 * Reads a duration such as 30m or 1h; 0 ends the trust.
 * @throws OperatorError
 */
function durationOf(text: unknown): number {
  const [, count, unit] = /^(\d{1,4})([mh])$/.exec(String(text)) ?? []
  const ms = text === '0' ? 0 : Number(count) * (UNITS[unit as string] as number)
  if (Number.isNaN(ms) || ms > TRUST_MAX_MS)
    throw new OperatorError('--for: must be minutes or hours, such as 30m or 1h, up to 24h, or 0')
  return ms
}

/**
 * Lets the endpoints of a network end and price transfers for a time although their newest block
 * seems to be old, as on a chain that produces no blocks.
 */
export const trustEndpoints: Command<Services> = async ({ database, networks }, input) => {
  const code = String(input['network'])
  if (!networks.has(code))
    throw new OperatorError(
      `NETWORK: ${code} has no endpoint; must be one of ${networks
        .all()
        .map(({ network }) => network.code)
        .join(', ')}`,
    )
  const ms = durationOf(input['for'])
  const until = await database.transaction(async (tx) => {
    const at = new Date(tx.now().getTime() + ms)
    const changed = await tx.query(
      'update network_scans set trusted_until = $2 where network = $1 returning network',
      [code, at],
    )
    if (changed.length === 0)
      throw new OperatorError(`NETWORK: ${code} is not used yet: no workspace has an address on it`)
    // The setting applies to every workspace.
    for (const { id } of await tx.query<{ id: string }>('select id from workspaces order by id'))
      await writeAudit(tx, id, OPERATOR, {
        action: 'endpoints.trusted',
        object: code,
        details: { until: at.toISOString() },
      })
    return at
  })
  return {
    network: code,
    trusted_until: until.toISOString(),
    endpoints: (await networks.get(code).belief?.states()) ?? [],
  }
}
