import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  ETH,
  eth,
  refused,
  signed,
  SignerCluster,
  type Answer,
  type Workspace,
} from '../../testing/signer-cluster.ts'

/**
 * The limits of 24 hours at three real nodes: all pairs together stay within them. Four sweeps of
 * a sub-account, each with a fee of a whole cap, fit into its budget of four caps.
 */
const CAP = BigInt(ETH.fee_cap)
const FIT = 4
const GAS = 21_000n
const PAIRS = [
  [1, 2],
  [2, 3],
  [3, 1],
  [2, 1],
  [3, 2],
  [1, 3],
] as const
const started = (): Promise<SignerCluster> =>
  SignerCluster.start({
    engine: 'double',
    edit: (config) => {
      // A sub-account's sweeps may use a quarter of this.
      config.budget_fee_caps = 4 * FIT
    },
  })
let cluster: SignerCluster
before(async () => {
  cluster = await started()
})
after(async () => {
  await cluster.stop()
})

async function sweepsOf(workspace: Workspace) {
  await workspace.caller(1)
  const to = workspace.address(ETH, [1, ETH.chain_index, 0])
  const maxFeePerGas = CAP / GAS
  // Moving no more than the fee, so that nearly the whole fee counts.
  const value = maxFeePerGas * GAS
  return (index: number, pair: readonly [number, number]): Promise<Answer> =>
    workspace.sign(
      { kind: 'sweep', sub_account: 1, asset: 'ETH', address_index: index },
      eth([1, ETH.chain_index, index], { to, value, maxFeePerGas }),
      pair,
    )
}
const isSigned = ({ status, body }: Answer): boolean => {
  if (status === 200) return true
  assert.ok(['BUDGET', 'TOO_BUSY'].includes(body.error), JSON.stringify(body))
  return false
}

test('attack: pairs that sign at the same time do not exceed a limit together', async () => {
  const sweep = await sweepsOf(await cluster.workspace())
  const done = new Set<number>()
  const round = async (): Promise<void> => {
    const answers = await Promise.all(
      PAIRS.flatMap((pair, at) =>
        [0, 1].map(async (more) => {
          const index = 1 + 2 * at + more
          return [index, isSigned(await sweep(index, pair))] as const
        }),
      ),
    )
    for (const [index, is] of answers) if (is) done.add(index)
  }
  await round()
  assert.ok(done.size <= FIT, `${done.size} of ${FIT} signed`)
  await round()
  assert.ok(done.size <= FIT, `${done.size} of ${FIT} signed`)
  // A step that a partner has recorded counts although its coordinator gave up, so fewer may fit;
  // then it can still be signed itself.
  for (const [at, pair] of PAIRS.entries())
    for (const index of [1 + 2 * at, 2 + 2 * at])
      if (isSigned(await sweep(index, pair))) done.add(index)
  assert.ok(done.size >= 1 && done.size <= FIT, `${done.size} of ${FIT} signed`)
  for (const [at, pair] of PAIRS.entries())
    if (isSigned(await sweep(20 + at, pair))) done.add(20 + at)
  assert.ok(done.size <= FIT, `${done.size} of ${FIT} signed`)
})

test('attack: each pair counts what the others have signed, also after a restart', async () => {
  const sweep = await sweepsOf(await cluster.workspace())
  signed(await sweep(1, [1, 2]))
  signed(await sweep(2, [2, 3]))
  signed(await sweep(3, [3, 1]))
  signed(await sweep(4, [1, 3]))
  // The same transaction counts once, whichever pair signs it again.
  for (const pair of PAIRS) signed(await sweep(1, pair))
  for (const [at, pair] of PAIRS.entries()) refused(await sweep(10 + at, pair), 'BUDGET')
  for (const node of [1, 2, 3]) await cluster.restartHere(node)
  for (const [at, pair] of PAIRS.entries()) refused(await sweep(10 + at, pair), 'BUDGET')
})

test('attack: a node with a wrong clock signs nothing that counts against a limit', async () => {
  // A node's clock never goes back, so the other tests cannot use this cluster.
  const separate = await started()
  try {
    const sweep = await sweepsOf(await separate.workspace())
    separate.aheadMsOf.set(3, 90_000)
    // The platform's order is from the past by its clock.
    refused(await sweep(1, [1, 3]), 'ORDER_STALE')
    refused(await sweep(1, [3, 2]), 'ORDER_STALE')
    signed(await sweep(1, [1, 2]))
  } finally {
    await separate.stop()
  }
})
