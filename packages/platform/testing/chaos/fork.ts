import { cpSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { callPlatform } from '../../src/server/operator/connect.ts'
import type { ChaosRun } from './chaos-run.ts'
import type { Installation } from './installation.ts'

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

/** How a round ends. `returns`: the endpoints show the known blocks again. */
type End = 'accepted' | 'killed, then accepted' | 'returns'

/**
 * Replaces final blocks of all chains while transfers are pending and confirmed. The operator accepts the
 * other chains, once after the platform was killed; in the last round the known blocks return, as after
 * a minute on another fork, and nothing is to be done. A Tron transfer whose reference block has left the
 * chain waits until it expires, and fails.
 */
export async function forked(run: ChaosRun): Promise<string[]> {
  const { installation, payments } = run
  const ask: Ask = (command, input) => callPlatform(installation.home, command, input)
  const networks = [...new Set(payments.places.map(({ network }) => network))]
  await run.begin()
  // The forks do not remove the coins of the wallets.
  for (const network of networks)
    await ask('devnet', { command: 'mine', network, blocks: DEPTH + 1 })
  for (const end of ['accepted', 'killed, then accepted', 'returns'] as const)
    await round(run, ask, networks, end)
  return run.end()
}

type Ask = (command: string, input: Record<string, unknown>) => Promise<Record<string, unknown>>

async function round(
  run: ChaosRun,
  ask: Ask,
  networks: readonly string[],
  end: End,
): Promise<void> {
  const { installation, payments } = run
  const contradicted = async (): Promise<Contradicted[]> =>
    (await ask('doctor', {}))['contradicted'] as Contradicted[]
  const ended = async () => (await payments.pending()) === 0
  run.send(12)
  await run.answered()
  await run.expectSoon('transfers end', ended, RECOVERY_MS, () => payments.pending())
  run.send(12)
  await run.answered()
  const known = new KnownChains(installation)
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
  if (end === 'killed, then accepted') {
    installation.kill('platform')
    await sleep(1000)
    await installation.ready(RECOVERY_MS)
  }
  if (end === 'returns') {
    await known.bringBack()
    await run.expectSoon(
      'the halt ends by itself when the known blocks return',
      async () => (await contradicted()).length === 0,
      NOTICED_MS,
      contradicted,
    )
  } else await accept(run, await contradicted())
  if (networks.includes('TRX'))
    await ask('devnet', { command: 'clock', network: 'TRX', advance: PAST_EXPIRY })
  await run.expectSoon('all that was accepted ends', ended, RECOVERY_MS, () => payments.pending())
}

async function accept(run: ChaosRun, contradicted: readonly Contradicted[]): Promise<void> {
  for (const { network, height, other } of contradicted) {
    const { status, text } = await run.installation.cli(
      'chain',
      'accept-reorg',
      network,
      String(height),
      other,
    )
    run.expect(`the operator accepts the other chain of ${network}`, status === 0, text)
  }
}

/** The chains' journals as they were before a fork. */
class KnownChains {
  readonly #installation: Installation
  readonly #chains: string
  readonly #kept: string

  constructor(installation: Installation) {
    this.#installation = installation
    this.#chains = join(installation.home, 'devnet')
    this.#kept = `${installation.home}.chains`
    rmSync(this.#kept, { recursive: true, force: true })
    cpSync(this.#chains, this.#kept, {
      recursive: true,
      filter: (path) => statSync(path).isFile() || statSync(path).isDirectory(),
    })
  }

  /** Stops the installation and starts it with the kept chains. */
  async bringBack(): Promise<void> {
    await this.#installation.stop()
    rmSync(this.#chains, { recursive: true })
    renameSync(this.#kept, this.#chains)
    await this.#installation.start()
  }
}
