import type { SignerNodes } from './nodes.ts'

/** What a node says of itself; null: it was not heard. */
export interface NodeStatus { node: number; status: { ready: boolean; mode: string } | null }

const TIMEOUT_MS = 1500

/** Asks every node how it is; one that is away delays nobody for longer than a second and a half. */
export async function heardStatus(signers: SignerNodes): Promise<NodeStatus[]> {
  return Promise.all(signers.peers.map(async ({ node }) => ({
    node,
    status: await signers.call<{ ready?: unknown; mode?: unknown }>(node, 'GET', '/status', undefined, TIMEOUT_MS)
      .then(({ ready, mode }) => ({ ready: ready === true, mode: String(mode) }), () => null),
  })))
}
