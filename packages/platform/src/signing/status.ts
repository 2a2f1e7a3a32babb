import type { SignerNodes } from './nodes.ts'

/** What a node says of itself; null: it was not heard. */
export interface NodeStatus {
  node: number
  status: Said | null
}

/**
 * `clockS`: its clock, in whole seconds; `keysReady`: of workspaces to come, by curve; `peersDown`:
 * others that it does not reach; `bans`: others that it has banned; `banReports`: bans that others
 * reported to it.
 */
interface Said {
  ready: boolean
  mode: string
  clockS: number | null
  keysReady: Record<string, number>
  peersDown: number
  bans: number[]
  banReports: { node: number; by: number }[]
}

interface Status {
  ready?: unknown
  mode?: unknown
  clock?: unknown
  pool?: unknown
  peers?: unknown
  bans?: unknown
  ban_reports?: unknown
}

const TIMEOUT_MS = 1500

/**
 * Asks every node how it is; one that is away delays nobody for longer than a second and a half.
 */
export async function heardStatus(signers: SignerNodes): Promise<NodeStatus[]> {
  return Promise.all(
    signers.peers.map(async ({ node }) => ({
      node,
      status: await signers
        .call<Status>(node, 'GET', '/status', undefined, TIMEOUT_MS)
        .then(read, () => null),
    })),
  )
}

const isNode = (value: unknown): value is number => value === 1 || value === 2 || value === 3

/**
 * The nodes that a node's answer says it has banned; of an earlier version or in another shape:
 * none.
 */
export const readBans = (bans: unknown): number[] =>
  Array.isArray(bans) ? bans.filter(isNode) : []

interface Report {
  node: number
  by: number
}
const isReport = (value: { node?: unknown; by?: unknown } | null): value is Report =>
  isNode(value?.node) && isNode(value?.by)

const read = ({ ready, mode, clock, pool, peers, bans, ban_reports: reports }: Status): Said => ({
  ready: ready === true,
  mode: String(mode),
  clockS: typeof clock === 'number' ? clock : null,
  keysReady: Object.fromEntries(
    Object.entries(pool ?? {}).filter(
      (each): each is [string, number] => typeof each[1] === 'number',
    ),
  ),
  peersDown: Array.isArray(peers)
    ? peers.filter((each: { reachable?: unknown } | null) => each?.reachable !== true).length
    : 0,
  bans: readBans(bans),
  banReports: Array.isArray(reports) ? reports.filter(isReport) : [],
})
