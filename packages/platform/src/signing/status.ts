import type { SignerNodes } from './nodes.ts'

/** What a node says of itself; null: it was not heard. */
export interface NodeStatus { node: number; status: Said | null }

/** `clockS`: its clock, in whole seconds; `keysReady`: of workspaces to come, by curve; `peersDown`: others that it does not reach. */
interface Said { ready: boolean; mode: string; clockS: number | null; keysReady: Record<string, number>; peersDown: number }

interface Status { ready?: unknown; mode?: unknown; clock?: unknown; pool?: unknown; peers?: unknown }

const TIMEOUT_MS = 1500

/** Asks every node how it is; one that is away delays nobody for longer than a second and a half. */
export async function heardStatus(signers: SignerNodes): Promise<NodeStatus[]> {
  return Promise.all(signers.peers.map(async ({ node }) => ({
    node,
    status: await signers.call<Status>(node, 'GET', '/status', undefined, TIMEOUT_MS).then(read, () => null),
  })))
}

const read = ({ ready, mode, clock, pool, peers }: Status): Said => ({
  ready: ready === true, mode: String(mode), clockS: typeof clock === 'number' ? clock : null,
  keysReady: Object.fromEntries(Object.entries(pool ?? {}).filter((each): each is [string, number] => typeof each[1] === 'number')),
  peersDown: Array.isArray(peers) ? peers.filter((each: { reachable?: unknown } | null) => each?.reachable !== true).length : 0,
})
