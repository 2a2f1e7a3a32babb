import { setTimeout as sleep } from 'node:timers/promises'
import { SeededRandom } from '../simulator/seeded-random.ts'
import type { Cluster, Trouble } from './cluster.ts'
import type { ChaosRun } from './chaos-run.ts'

export interface Failovers {
  cluster: Cluster
  run: ChaosRun
  seed: number
  /** Total number of transfers, besides those that check whether the platform responds again. */
  transfers: number
  perSecond: number
  /** Failures, in order; the cluster is complete again before each of them. */
  troubles: readonly Trouble[]
}

/** Time in milliseconds during which transfers are accepted before each failure. */
const BEFORE_MS = 3000
const ASKED_EVERY_MS = 250
const GOES_ON_WITHIN_MS = 90_000
const WHOLE_WITHIN_MS = 120_000

/**
 * Sends requests repeatedly, without waiting for those that hang.
 * @returns the milliseconds until a request was accepted; null if none was accepted in time
 */
async function goesOn(run: ChaosRun): Promise<number | null> {
  const begun = Date.now()
  const queries: Promise<void>[] = []
  let afterMs: number | null = null
  while (afterMs === null && Date.now() - begun < GOES_ON_WITHIN_MS) {
    queries.push(
      run.tried().then(({ status }) => {
        if (status === 200) afterMs ??= Date.now() - begun
      }),
    )
    await sleep(ASKED_EVERY_MS)
  }
  await Promise.all(queries)
  return afterMs
}

/**
 * Causes each failure at the primary under load, and waits until that host has returned as a
 * standby of another primary.
 */
export async function primaryFails({
  cluster,
  run,
  seed,
  transfers,
  perSecond,
  troubles,
}: Failovers): Promise<string[]> {
  await run.begin()
  const gaveUp = new AbortController()
  const sending = run.payments.send(transfers, perSecond, new SeededRandom(seed * 2), gaveUp.signal)
  const pauses = new Map<Trouble, number[]>()
  for (const trouble of troubles) {
    await sleep(BEFORE_MS)
    const accepted = run.payments.wanted.filter(({ id }) => id !== null).length
    const { name, mend } = await cluster.strike(trouble)
    const afterMs = await goesOn(run)
    run.expect(
      `${trouble} (${name}, ${accepted} accepted so far): another transfer is accepted after ${afterMs ?? 0} ms`,
      afterMs !== null,
      cluster.lastLines(),
    )
    if (afterMs !== null) pauses.set(trouble, [...(pauses.get(trouble) ?? []), afterMs])
    const repairedAt = Date.now()
    await mend()
    await cluster.whole(WHOLE_WITHIN_MS)
    const primary = (await cluster.primary())?.name
    run.say(
      `all three are there again after ${((Date.now() - repairedAt) / 1000).toFixed(1)} s; ${String(primary)} is the primary`,
    )
  }
  await sending
  gaveUp.abort()
  const problems = await run.end()
  for (const [trouble, all] of pauses)
    run.say(`${trouble}: ${all.map((ms) => `${(ms / 1000).toFixed(1)} s`).join(', ')}`)
  for (const [code, count] of run.payments.unanswered)
    run.say(`${String(count).padStart(6)}  requests without success: ${code}`)
  return problems
}
