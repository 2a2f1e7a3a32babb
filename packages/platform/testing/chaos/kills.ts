import { setTimeout as sleep } from 'node:timers/promises'
import { SeededRandom } from '../simulator/seeded-random.ts'
import { atRest, endWell } from './checks.ts'
import type { Installation } from './installation.ts'
import { Payments } from './payments.ts'
import { RandomKills } from './random-kills.ts'

export interface KillRun {
  seed: number
  transfers: number
  assets: readonly string[]
  /** Number of new transfers per second. */
  perSecond: number
  secondsBetweenKills: number
  /**
   * If given, each kind of process is killed this number of times in turn, instead of at random.
   */
  rounds: number | null
  /** Maximum duration of fault injection in seconds, even if transfers are pending. */
  stormSecondsMax: number
  say(line: string): void
}

const REST_MS = 900_000
/** Share of the requested transfers that must have ended before the fault injection stops. */
const ENDED_SHARE = 0.8
const LOOK_MS = 5000

/**
 * Sends transfers while processes are killed, then waits until all have ended and checks the
 * results.
 * @returns the problems
 */
export async function killed(installation: Installation, run: KillRun): Promise<string[]> {
  const { say } = run
  const payments = new Payments(installation, run.assets)
  const begun = Date.now()
  const seconds = () => ((Date.now() - begun) / 1000).toFixed(0)
  await installation.start()
  await payments.open()
  say(`${seconds()} s: wallets of ${run.assets.join(', ')} in two sub-accounts have their coins`)
  const killer = new RandomKills(installation, new SeededRandom(run.seed * 2 + 1))
  const [calm, gaveUp] = [new AbortController(), new AbortController()]
  const raging =
    run.rounds === null
      ? killer.rage(run.secondsBetweenKills * 1000, calm.signal)
      : killer.each(run.rounds, run.secondsBetweenKills * 1000, calm.signal)
  const sending = payments.send(
    run.transfers,
    run.perSecond,
    new SeededRandom(run.seed * 2),
    gaveUp.signal,
  )
  let isSent = false
  void sending.then(() => {
    isSent = true
  })
  const watching = (async () => {
    for (
      let next = Date.now() + 30_000;
      Date.now() - begun < run.stormSecondsMax * 1000;
      await sleep(LOOK_MS)
    ) {
      const pending = await payments.pending()
      const accepted = payments.wanted.filter(({ id }) => id !== null).length
      if (Date.now() > next) {
        say(
          `${seconds()} s: ${accepted} accepted, ${pending === null ? 'no answer' : `${pending} pending`}, ${killer.total} kills`,
        )
        next = Date.now() + 30_000
      }
      if (isSent && pending !== null && pending <= run.transfers * (1 - ENDED_SHARE)) return
    }
  })()
  await (run.rounds === null ? watching : raging)
  calm.abort()
  await raging
  say(
    `${seconds()} s: the storm is over after ${killer.total} kills; ${payments.wanted.filter(({ id }) => id !== null).length} accepted, ${String(await payments.pending())} pending`,
  )
  await installation.ready(180_000, '/readyz?deep')
  await sending
  gaveUp.abort()
  await atRest(payments, REST_MS)
  say(`${seconds()} s: all is at rest`)
  const { problems, compared } = await endWell(installation, payments)
  if (killer.total === 0) problems.push('nothing was killed')
  for (const [kind, count] of killer.kills) say(`${String(count).padStart(6)}  ${kind} killed`)
  for (const [code, count] of payments.unanswered)
    say(`${String(count).padStart(6)}  requests without success: ${code}`)
  const ends = new Map<string, number>()
  for (const { end, place } of payments.wanted) {
    const key = `${place.asset} ${end === null ? 'unknown' : end.status}`
    ends.set(key, (ends.get(key) ?? 0) + 1)
  }
  for (const [end, count] of [...ends].sort()) say(`${String(count).padStart(6)}  ${end}`)
  say(
    `seed ${run.seed}: ${payments.wanted.length} transfers, ${killer.total} kills, ${installation.starts} starts of the platform, ${compared} compared with the chains, ${seconds()} s`,
  )
  installation.note(
    'transfers',
    payments.wanted.map(({ wallets, place, ids, ...each }) => ({
      ...each,
      units: String(each.units),
      asset: place.asset,
      of: wallets.subAccount,
      ids: [...ids],
    })),
  )
  return problems
}
