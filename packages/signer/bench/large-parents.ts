import { interleaved, median, report } from '../../../testing/figures.ts'
import { spendingParents } from '../testing/large-parents.ts'
import { pay, Workspace, type SignerCluster } from '../testing/signer-cluster.ts'
import { good } from './flights.ts'

const INPUTS = 22
/** Sizes of the previous transactions in bytes: about as large as a block allows, and as usual. */
const SIZES = { large: 990_000, usual: 1000 }
/** Time in milliseconds that the platform waits for the signatures of these inputs. */
const PATIENCE_MS = 6000 + 150 * INPUTS

/**
 * Measures an order of many inputs whose previous transactions are very large.
 * @param nodesMs returns the processor time in milliseconds that the nodes have used
 */
export async function measureLargeParents(
  cluster: SignerCluster,
  nodesMs: () => number,
  rounds: number,
): Promise<void> {
  const key = await cluster.key(1, 'bench-parents', 'secp256k1')
  good(key)
  const workspace = new Workspace(cluster, 'bench-parents', key.body)
  const caller = await workspace.caller()
  const waits: number[] = []
  const measured = async (bytes: number): Promise<number> => {
    const { request, unsigned } = await spendingParents(workspace, caller, { count: INPUTS, bytes })
    const [before, begun] = [nodesMs(), performance.now()]
    good(await workspace.sign(pay(request), unsigned))
    if (bytes === SIZES.large) waits.push(performance.now() - begun)
    return nodesMs() - before
  }
  await measured(SIZES.usual)
  const cost = await interleaved(rounds, {
    large: () => measured(SIZES.large),
    usual: () => measured(SIZES.usual),
  })
  report({
    name: `${INPUTS} inputs of transactions of 1 MB, processor time`,
    unit: 'ms',
    value: cost.large,
    floor: cost.usual,
    target: { atMost: 8 },
    note: `floor: transactions of 1 kB; takes ${median(waits).toFixed(0)} of at most ${PATIENCE_MS} ms`,
  })
}
