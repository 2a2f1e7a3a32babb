import { setTimeout as sleep } from 'node:timers/promises'
import { median, report } from '../../../testing/figures.ts'
import { SignerCluster } from '../testing/signer-cluster.ts'
import { ethPayments, good, PAIRS, type Item } from './flights.ts'

/**
 * Measures how long new workspaces wait for their keys at three real nodes, and how much the
 * generation of keys delays signatures: `node bench/keys.bench.ts [new workspaces] [signatures]`.
 */
const [count, signatures] = [Number(process.argv[2] ?? 50), Number(process.argv[3] ?? 100)]
/** Default size of the pool. */
const POOL = 2
/** Pause between two signatures, so that they use a part of the processors only. */
const PAUSE_MS = 100
const CURVE = 'secp256k1'

const cluster = await SignerCluster.start({
  edit: (config) => {
    config.pool = { secp256k1: POOL, ed25519: POOL }
  },
  where: 'apart',
})

const status = async () =>
  (await cluster.get(1, '/status')).body as {
    pool: Record<string, number>
    key_queue: { waiting: number; generating: number }
  }

/** Returns the time in milliseconds until each workspace has its key, all requested together. */
const newWorkspaces = async (name: string, number: number): Promise<number[]> => {
  const begun = performance.now()
  return Promise.all(
    Array.from({ length: number }, async (_, at) => {
      good(await cluster.key(1, `${name}-${at}`, CURVE))
      return performance.now() - begun
    }),
  )
}

/** Waits until the pool is full and no key is being generated. */
async function settled(): Promise<void> {
  for (;;) {
    const { pool, key_queue: queue } = await status()
    const isFull = Object.values(pool).every((ready) => ready >= POOL)
    if (isFull && queue.waiting === 0 && queue.generating === 0) return
    await sleep(200)
  }
}

try {
  const workspace = await cluster.workspace()
  const items = await ethPayments(await workspace.caller(1), 2 * signatures + 10)
  const sign = async (item: Item): Promise<number> => {
    const begun = performance.now()
    good(await workspace.sign(item.purpose, item.unsigned, PAIRS[0]))
    const took = performance.now() - begun
    await sleep(PAUSE_MS)
    return took
  }
  await settled()
  const [warm] = (await newWorkspaces('warm', 1)) as [number]
  report({
    name: 'a new workspace, with a prepared key',
    unit: 's',
    value: warm / 1000,
    floor: null,
    target: { atMost: 2 },
  })

  // The prepared homes have more keys than the pool.
  for (let at = 0; (await status()).pool[CURVE]! > POOL; at++) await newWorkspaces(`take-${at}`, 1)
  await settled()
  for (const item of items.splice(0, 10)) await sign(item)
  const quiet: number[] = []
  for (const item of items.splice(0, signatures)) quiet.push(await sign(item))
  const burst = newWorkspaces('burst', count)
  let isOver = false
  const over = burst.finally(() => {
    isOver = true
  })
  const busy: number[] = []
  for (const item of items) {
    if (isOver) break
    busy.push(await sign(item))
  }
  const waits = await burst
  await over
  report({
    name: `${count} new workspaces at once: until all have keys`,
    unit: 's',
    value: Math.max(...waits) / 1000,
    floor: null,
    target: { atMost: 180 },
    note: `half of them after ${(median(waits) / 1000).toFixed(1)} s`,
  })
  report({
    name: 'a signature while keys are generated, p50',
    unit: 'ms',
    value: median(busy),
    floor: median(quiet),
    target: { atMost: 1.2 },
    note: `${busy.length} signatures; floor: no key is generated`,
  })
} finally {
  await cluster.stop()
}
