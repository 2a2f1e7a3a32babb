import type { Details } from '../../console-api/people/audit-chain.ts'
import { OPERATOR, writeAudit } from '../../console-api/people/audit-log.ts'
import type { Database, Queryable } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { acceptBlock, contradictionsOf } from '../../custody/deposits/contradiction.ts'
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

/** @throws OperatorError */
function networkOf(networks: Networks, input: Record<string, unknown>): string {
  const code = String(input['network'])
  if (networks.has(code)) return code
  const codes = networks.all().map(({ network }) => network.code)
  throw new OperatorError(`NETWORK: ${code} has no endpoint; must be one of ${codes.join(', ')}`)
}

/** Writes an entry into the audit log of every workspace, because all of them use the network. */
async function auditEverywhere(
  tx: Queryable,
  action: string,
  object: string,
  details: Details,
): Promise<void> {
  for (const { id } of await tx.query<{ id: string }>('select id from workspaces order by id'))
    await writeAudit(tx, id, OPERATOR, { action, object, details })
}

/**
 * Lets the endpoints of a network end and price transfers for a time although their newest block
 * seems to be old, as on a chain that produces no blocks.
 */
export const trustEndpoints: Command<Services> = async ({ database, networks }, input) => {
  const code = networkOf(networks, input)
  const ms = durationOf(input['for'])
  const until = await database.transaction(async (tx) => {
    const at = new Date(tx.now().getTime() + ms)
    const changed = await tx.query(
      'update network_scans set trusted_until = $2 where network = $1 returning network',
      [code, at],
    )
    if (changed.length === 0)
      throw new OperatorError(`NETWORK: ${code} is not used yet: no workspace has an address on it`)
    await auditEverywhere(tx, 'endpoints.trusted', code, { until: at.toISOString() })
    return at
  })
  return {
    network: code,
    trusted_until: until.toISOString(),
    endpoints: (await networks.get(code).belief?.states()) ?? [],
  }
}

/**
 * Accepts the block that an endpoint returns instead of one that was final. What the known blocks from
 * there on have booked is then taken back, and the network credits and pays again.
 */
export const acceptReorg: Command<Services> = async ({ database, networks }, input) => {
  const code = networkOf(networks, input)
  const [height, hash] = [String(input['height']), String(input['hash'])]
  if (!/^\d{1,15}$/.test(height))
    throw new OperatorError('HEIGHT: must be the height of a block, such as 840000')
  const found = await database.transaction(async (tx) => {
    const contradiction = (await contradictionsOf(tx)).get(code)
    if (contradiction === undefined)
      throw new OperatorError(`NETWORK: no endpoint contradicts a final block of ${code}`)
    if (!(await acceptBlock(tx, code, { height: Number(height), other: hash })))
      throw new OperatorError(
        `HEIGHT and HASH: the endpoint of ${code} returns ${contradiction.other} as block ${contradiction.height}; compare it with a block explorer before you accept it`,
      )
    const { known, other } = contradiction
    await auditEverywhere(tx, 'chain.reorg_accepted', code, { height, known, accepted: other })
    return contradiction
  })
  return { network: code, height: found.height, known: found.known, accepted: found.other }
}
