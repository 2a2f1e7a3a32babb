import { join } from 'node:path'
import { Store } from '../src/store/index.ts'
import type { SignerCluster } from './signer-cluster.ts'

/** Restarts a node of this process with its record, as if its operator had just restored it. */
export async function restartRestored(cluster: SignerCluster, node: number): Promise<void> {
  await cluster.restartHere(node, async () => {
    const path = join(cluster.peers.nodes[node - 1]!.home, 'record.sqlite')
    const store = new Store(path, () => Date.now() + cluster.aheadMs)
    store.append('restored', { generation: store.state.generation + 1, not_before: 0 })
    store.close()
  })
}
