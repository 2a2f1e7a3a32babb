import { setTimeout as sleep } from 'node:timers/promises'
import { callPlatform } from '../../src/server/operator/connect.ts'
import type { ChaosRun } from './chaos-run.ts'

/** Number of blocks that are replaced: more than any of these chains needs for finality. */
const DEPTH = 20
const LOOK_MS = 20_000
const NOTICED_MS = 60_000
const RECOVERY_MS = 180_000
/** Longer than a Tron transaction is valid. */
const PAST_EXPIRY = '+15m'

interface Contradicted {
  network: string
  height: number
  other: string
}

/**
 * Replaces final blocks of all chains while transfers are pending and confirmed: once with the
 * transactions of the replaced blocks returned to the memory pool, once with the platform killed before
 * the operator accepts the other chains. A Tron transfer whose reference block the fork removed waits
 * until it expires, and fails.
 */
export async function forked(run: ChaosRun): Promise<string[]> {
  const { installation, payments } = run
  const ask = (command: string, input: Record<string, unknown>) =>
    callPlatform(installation.home, command, input)
  const networks = [...new Set(payments.places.map(({ network }) => network))]
  const contradicted = async (): Promise<Contradicted[]> =>
    (await ask('doctor', {}))['contradicted'] as Contradicted[]
  const ended = async () => (await payments.pending()) === 0
  await run.begin()
  // The forks do not remove the coins of the wallets.
  for (const network of networks)
    await ask('devnet', { command: 'mine', network, blocks: DEPTH + 1 })
  for (const isKilled of [false, true]) {
    run.send(12)
    await run.answered()
    await run.expectSoon('transfers end', ended, RECOVERY_MS, () => payments.pending())
    run.send(12)
    await run.answered()
    for (const network of networks) await ask('devnet', { command: 'reorg', network, depth: DEPTH })
    run.say(`${DEPTH} blocks of ${networks.join(', ')} are replaced`)
    await run.expectSoon(
      'the doctor names each network',
      async () => (await contradicted()).length === networks.length,
      NOTICED_MS,
      contradicted,
    )
    const before = (await payments.pending()) ?? 0
    const taken = await run.tried()
    run.expect('a new transfer is taken', taken.status === 200, taken)
    await sleep(LOOK_MS)
    const waiting = (await payments.pending()) ?? 0
    run.expect('and none ends', waiting > before, { before, waiting })
    if (isKilled) {
      installation.kill('platform')
      await sleep(1000)
      await installation.ready(RECOVERY_MS)
    }
    for (const { network, height, other } of await contradicted()) {
      const { status, text } = await installation.cli(
        'chain',
        'accept-reorg',
        network,
        String(height),
        other,
      )
      run.expect(`the operator accepts the other chain of ${network}`, status === 0, text)
    }
    if (networks.includes('TRX'))
      await ask('devnet', { command: 'clock', network: 'TRX', advance: PAST_EXPIRY })
    await run.expectSoon('all that was accepted ends', ended, RECOVERY_MS, () => payments.pending())
  }
  return run.end()
}
