import { z } from 'zod'
import type { Database } from '../../core/database/pool.ts'
import { contradictionText, type Contradiction } from '../../core/engine/endpoints/belief.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { readBans } from '../../core/signing/status.ts'
import { WORKSPACE, workspaceParams } from './workspace.ts'

interface Services {
  database: Database
  networks: Networks
  signers: SignerNodes
  hold: DatabaseHold
}

const NODE_TIMEOUT_MS = 1500
/**
 * Number of blocks from which a scan counts as behind, and age in seconds from which the oldest
 * entry of a queue is reported.
 */
const LAG_BLOCKS_MAX = 20
const QUEUE_AGE_MAX_S = 900
const NODES_NEEDED = 2

const alert = z.object({
  level: z.enum(['warning', 'critical']),
  code: z.string(),
  message: z.string(),
})

/**
 * Returns the state of the installation's components, and the waiting operations of this workspace.
 */
export const readHealth = panelEndpoint({
  method: 'GET',
  path: `${WORKSPACE}/health`,
  summary: 'Read the status of nodes, chains and queues',
  needs: 'viewer',
  params: z.strictObject(workspaceParams),
  response: z.object({
    nodes: z.array(
      z.object({
        node: z.int(),
        reachable: z.boolean(),
        ready: z.boolean(),
        height: z.int().nullable(),
        head: z.string().nullable(),
        keys: z.int().nullable(),
      }),
    ),
    chains: z.array(
      z.object({
        network: z.string(),
        height: z.int().nullable(),
        tip: z.int().nullable(),
        lag_blocks: z.int().nullable(),
        tip_age_s: z
          .int()
          .nullable()
          .meta({ description: 'Time since the last block that the scanner has read' }),
        ok: z.boolean(),
        contradicted: z
          .boolean()
          .meta({ description: 'Whether an endpoint contradicts a final block' }),
        reason: z.string().nullable(),
      }),
    ),
    queue: z
      .object({
        due: z.int(),
        waiting: z.int(),
        oldest_s: z.int().nullable(),
        by_state: z.record(z.string(), z.int()),
      })
      .meta({ description: 'Transactions of this workspace that are in progress' }),
    webhooks: z.object({ pending: z.int(), oldest_s: z.int().nullable(), disabled: z.int() }),
    alerts: z.array(alert),
  }),
  async handler({ visitor: { member } }, services: Services) {
    const nodes = await nodesOf(services)
    const health = await healthOf(services, member.workspaceId, nodes)
    return { body: { nodes: nodes.map(({ bans: _bans, ...node }) => node), ...health } }
  },
})

/**
 * Returns the state of the chains and of a workspace's queues, and the alerts about them and about
 * the signer nodes.
 */
export async function healthOf(services: Services, workspaceId: string, nodes: Nodes) {
  const { database } = services
  const now = database.now()
  const [scans, states, webhooks, tanks] = await Promise.all([
    database.query<{
      network: string
      height: string | null
      tip_height: string
      updated_at: Date
      contradiction: Contradiction | null
    }>(
      'select network, height::text, tip_height::text, updated_at, contradiction from network_scans',
    ),
    database.query<{ state: string; count: number; due: number; oldest_s: number }>(
      `select state, count(*)::int, count(*) filter (where next_run_at <= $2)::int due,
         floor(extract(epoch from $2::timestamptz - min(created_at)))::int oldest_s
       from transactions where workspace_id = $1 and next_run_at is not null group by 1`,
      [workspaceId, now],
    ),
    database.one<{ pending: number; oldest_s: number | null; disabled: number }>(
      `select count(d.id)::int pending,
         floor(extract(epoch from $2::timestamptz - min(d.created_at)))::int oldest_s,
         (select count(*)::int from webhooks where workspace_id = $1
           and disabled_at is not null) disabled
       from webhooks w join webhook_deliveries d on d.workspace_id = w.workspace_id
         and d.webhook_id = w.id and d.status = 'pending'
       where w.workspace_id = $1`,
      [workspaceId, now],
    ),
    database.query<{ network: string; status: string }>(
      `select network, status from gas_tanks where workspace_id = $1 and status <> 'ok'
        order by network`,
      [workspaceId],
    ),
  ])
  const chains = chainsOf(services, scans, now)
  const queue = {
    due: states.reduce((sum, { due }) => sum + due, 0),
    waiting: states.reduce((sum, { count }) => sum + count, 0),
    oldest_s: states.length === 0 ? null : Math.max(...states.map(({ oldest_s }) => oldest_s)),
    by_state: Object.fromEntries(states.map(({ state, count }) => [state, count])),
  }
  const alerts = alertsOf(services, { nodes, chains, queue, tanks, webhooks })
  return { chains, queue, webhooks, alerts }
}

/** Status of each signer node. */
export type Nodes = Awaited<ReturnType<typeof nodesOf>>
type Chains = ReturnType<typeof chainsOf>

/** Reads the status of each signer node. A node that does not respond counts as unreachable. */
export const nodesOf = ({ signers }: Pick<Services, 'signers'>) =>
  Promise.all(
    signers.peers.map(async ({ node }) => {
      try {
        const said = await signers.call<{
          ready?: unknown
          keys?: unknown
          record?: { height?: unknown; head?: unknown }
          bans?: unknown
        }>(node, 'GET', '/status', undefined, NODE_TIMEOUT_MS)
        return {
          node,
          reachable: true,
          ready: said.ready === true,
          height: typeof said.record?.height === 'number' ? said.record.height : null,
          head: typeof said.record?.head === 'string' ? said.record.head : null,
          keys: typeof said.keys === 'number' ? said.keys : null,
          bans: readBans(said.bans),
        }
      } catch {
        return {
          node,
          reachable: false,
          ready: false,
          height: null,
          head: null,
          keys: null,
          bans: [],
        }
      }
    }),
  )

function chainsOf(
  { networks }: Services,
  scans: readonly {
    network: string
    height: string | null
    tip_height: string
    updated_at: Date
    contradiction: Contradiction | null
  }[],
  now: Date,
) {
  return networks.all().map(({ network }) => {
    const scan = scans.find((each) => each.network === network.code)
    // The network is not scanned, because no address exists on it yet.
    if (!scan || scan.height === null) {
      return {
        network: network.code,
        height: null,
        tip: null,
        lag_blocks: null,
        tip_age_s: null,
        ok: true,
        contradicted: false,
        reason: null,
      }
    }
    const [height, tip] = [
      Number(scan.height),
      Math.max(Number(scan.tip_height), Number(scan.height)),
    ]
    const lag = tip - height
    const reason = scan.contradiction
      ? contradictionText(network.code, scan.contradiction)
      : lag > LAG_BLOCKS_MAX
        ? `${lag} blocks have not been read yet`
        : null
    return {
      network: network.code,
      height,
      tip,
      lag_blocks: lag,
      tip_age_s: Math.max(0, Math.floor((now.getTime() - scan.updated_at.getTime()) / 1000)),
      ok: reason === null,
      contradicted: scan.contradiction !== null,
      reason,
    }
  })
}

export const banMessages = (
  nodes: readonly { node: number; bans: readonly number[] }[],
): string[] =>
  nodes.flatMap(({ node, bans }) =>
    bans.map(
      (banned) =>
        `signer ${node} has banned signer ${banned}: move the funds to a new installation`,
    ),
  )

function alertsOf(
  services: Services,
  {
    nodes,
    chains,
    queue,
    tanks,
    webhooks,
  }: {
    nodes: Nodes
    chains: Chains
    queue: { oldest_s: number | null; waiting: number }
    tanks: readonly { network: string; status: string }[]
    webhooks: { disabled: number } | undefined
  },
): z.output<typeof alert>[] {
  const alerts: z.output<typeof alert>[] = []
  const say = (level: 'warning' | 'critical', code: string, message: string) =>
    alerts.push({ level, code, message })
  const ready = nodes.filter((node) => node.ready).length
  if (services.hold.because !== null) say('critical', 'HELD', services.hold.because)
  if (services.hold.shortage !== null) say('critical', 'DISK_FULL', services.hold.shortage)
  const able = `${ready} of ${nodes.length} signer nodes can sign`
  if (ready < NODES_NEEDED)
    say('critical', 'NOTHING_SIGNS', `${able}; ${NODES_NEEDED} are required`)
  else if (ready < nodes.length) say('warning', 'NODE_AWAY', able)
  for (const message of banMessages(nodes)) say('critical', 'NODE_BANNED', message)
  for (const { network, ok, contradicted, reason } of chains)
    if (contradicted) say('critical', 'CHAIN_CONTRADICTED', `${network}: ${reason}`)
    else if (!ok) say('warning', 'CHAIN_BEHIND', `${network}: ${reason}`)
  for (const { network, status } of tanks) {
    const isEmpty = status === 'empty'
    say(
      isEmpty ? 'critical' : 'warning',
      isEmpty ? 'TANK_EMPTY' : 'TANK_LOW',
      `the gas tank of ${network} is ${status}`,
    )
  }
  if (queue.oldest_s !== null && queue.oldest_s > QUEUE_AGE_MAX_S) {
    const minutes = Math.floor(queue.oldest_s / 60)
    say(
      'warning',
      'QUEUE_OLD',
      `the oldest of ${queue.waiting} transactions in progress was started ${minutes} minutes ago`,
    )
  }
  if (webhooks && webhooks.disabled > 0)
    say(
      'warning',
      'WEBHOOK_DISABLED',
      webhooks.disabled === 1
        ? '1 webhook is disabled'
        : `${webhooks.disabled} webhooks are disabled`,
    )
  return alerts
}
