import type { SignerNodes } from './nodes.ts'

/** A node's status report; null: the node did not respond. */
export interface NodeStatus {
  node: number
  status: ReportedStatus | null
}

/**
 * Fields of a node's status. `clockS`: the node's clock, in whole seconds; `keysReady`: number of
 * prepared keys for future workspaces, by curve; `peersDown`: number of other nodes that it cannot
 * reach; `heapUsedPercent`: share of its heap that is in use; null: not reported; `policiesApart`: number of workspaces whose policy is late there, or differs from that of
 * another node; `policiesUnproven`: number of other nodes that claim policies there which they do not
 * send; `windowsNearlyFull`: number of windows of policies of which at least 90 % is used;
 * `policyResets`: number of workspaces whose policy an operator wants to replace by a
 * reset; `bans`: nodes that it has banned; `banReports`: bans that other nodes reported to it.
 */
interface ReportedStatus {
  ready: boolean
  mode: string
  clockS: number | null
  keysReady: Record<string, number>
  peersDown: number
  heapUsedPercent: number | null
  policiesApart: number
  policiesUnproven: number
  windowsNearlyFull: number
  policyResets: number
  bans: number[]
  banReports: { node: number; by: number }[]
}

interface Status {
  ready?: unknown
  mode?: unknown
  clock?: unknown
  pool?: unknown
  peers?: unknown
  heap_used_percent?: unknown
  policies_apart?: unknown
  policies_unproven?: unknown
  policy_windows_nearly_full?: unknown
  policy_resets?: unknown
  bans?: unknown
  ban_reports?: unknown
}

const TIMEOUT_MS = 1500

/** Reads the status of every node. An unreachable node delays the result by at most 1.5 seconds. */
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
 * Returns the nodes that a node reports as banned; empty if an earlier version or an unexpected
 * shape is returned.
 */
export const readBans = (bans: unknown): number[] =>
  Array.isArray(bans) ? bans.filter(isNode) : []

interface Report {
  node: number
  by: number
}
const isReport = (value: { node?: unknown; by?: unknown } | null): value is Report =>
  isNode(value?.node) && isNode(value?.by)

const read = ({
  ready,
  mode,
  clock,
  pool,
  peers,
  heap_used_percent: heapUsed,
  policies_apart: policiesApart,
  policies_unproven: policiesUnproven,
  policy_windows_nearly_full: nearlyFull,
  policy_resets: policyResets,
  bans,
  ban_reports: reports,
}: Status): ReportedStatus => ({
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
  // Absent in earlier versions.
  heapUsedPercent: typeof heapUsed === 'number' ? heapUsed : null,
  policiesApart: typeof policiesApart === 'number' ? policiesApart : 0,
  policiesUnproven: readBans(policiesUnproven).length,
  windowsNearlyFull: typeof nearlyFull === 'number' ? nearlyFull : 0,
  policyResets: typeof policyResets === 'number' ? policyResets : 0,
  bans: readBans(bans),
  banReports: Array.isArray(reports) ? reports.filter(isReport) : [],
})
