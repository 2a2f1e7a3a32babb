import type { Instance } from './instance.ts'
import type { SimulatedEnvironment } from './environment.ts'
import type { SimulatedNetwork } from './networks.ts'

/** Maximum depth of a reorganisation that drops transactions: blocks in which nothing is settled. */
const DROPPED_DEPTH_MAX = 2

/** Faults of processes, chains, nodes and the database; each simulation draws a subset. */
export const FAULTS = [
  'kill',
  'end',
  'stop',
  'pause',
  'reorg',
  'drop',
  'restart',
  'node',
  'clock',
  'cut',
] as const

/** Maximum number of processes with one role. */
const OF_A_ROLE_MAX = 3

export async function injectFault(
  environment: SimulatedEnvironment,
  kind: (typeof FAULTS)[number],
): Promise<void> {
  const { random, schedule } = environment
  const {
    network: { code },
    place,
  } = random.of(environment.networks)
  const instance =
    environment.instances.length > 0 ? random.of<Instance>(environment.instances) : null
  switch (kind) {
    case 'kill':
      if (!instance) return
      environment.noted('a process was killed')
      await environment.kill(instance)
      if (random.below(2) === 1) environment.start(instance.role)
      return
    case 'end':
      if (!instance) return
      instance.lastCommit = random.of(['unsent', 'unheard'] as const)
      environment.noted(`a process ended at a commit that was ${instance.lastCommit}`)
      if (environment.of(instance.role).length < OF_A_ROLE_MAX) environment.start(instance.role)
      return
    case 'restart': {
      const { role } = environment.start(random.of(environment.roles))
      const [oldest, ...others] = environment.of(role)
      if (!oldest || others.length < OF_A_ROLE_MAX) return
      // Work that the process had claimed and not done is lost with it, as at any other end.
      environment.noted('a process was killed')
      await environment.kill(oldest)
      return
    }
    case 'stop':
      if (!instance || instance.isStopping) return
      environment.noted('a process was told to end')
      environment.stop(instance)
      if (random.below(2) === 1) environment.start(instance.role)
      return
    case 'pause':
      if (!instance) return
      environment.noted('a process stood still')
      instance.actor.pausedUntilMs = schedule.nowMs + 1000 * (1 + random.below(200))
      return
    case 'node':
      return environment.nodeFaults.strikeDown()
    case 'clock':
      return environment.nodeFaults.strikeClock()
    case 'cut':
      environment.noted('all connections to the database ended')
      return environment.cutDatabase()
    case 'reorg':
      if (place.depthMax === 0) return
      environment.noted('a chain was reorganised')
      await reorganise(environment, place)
      return
    default: {
      const row = await environment.database.one<{ hash: string; network: string }>(
        `select c.hash, c.network from chain_transactions c where c.network = $1
          and c.state = 'SIGNED' and c.hash is not null order by c.id limit 1`,
        [code],
      )
      if (!row) return
      environment.noted('a node forgot a transaction')
      await environment
        .control({ command: 'drop', network: code, hash: row.hash })
        .catch(() => undefined)
    }
  }
}

/**
 * Replaces the last blocks of a chain. Transactions of the removed blocks return to the mempool; those of
 * few blocks may be dropped instead. A dropped deposit that a signed payment spends would leave that
 * payment waiting for as long as the payer does not send the deposit again.
 */
async function reorganise(
  environment: SimulatedEnvironment,
  { code, depthMax }: SimulatedNetwork,
): Promise<void> {
  const { random } = environment
  const depth = 1 + random.below(depthMax)
  const drop = random.below(2) === 1 && depth <= DROPPED_DEPTH_MAX
  await environment.control({ command: 'reorg', network: code, depth, drop })
}
