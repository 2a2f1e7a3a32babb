import type { Instance } from './instance.ts'
import type { SimulatedEnvironment } from './environment.ts'

/**
 * What may happen to processes, chains, nodes and the database during the storm; drawn for each
 * simulation.
 */
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

/** So many processes of one role are enough. */
const OF_A_ROLE_MAX = 3

export async function injectFault(
  world: SimulatedEnvironment,
  kind: (typeof FAULTS)[number],
): Promise<void> {
  const { chance, schedule } = world
  const {
    network: { code },
    place,
  } = chance.of(world.networks)
  const instance = world.instances.length > 0 ? chance.of<Instance>(world.instances) : null
  switch (kind) {
    case 'kill':
      if (!instance) return
      world.noted('a process was killed')
      await world.kill(instance)
      if (chance.below(2) === 1) world.start(instance.role)
      return
    case 'end':
      if (!instance) return
      instance.lastCommit = chance.of(['unsent', 'unheard'] as const)
      world.noted(`a process ended at a commit that was ${instance.lastCommit}`)
      if (world.of(instance.role).length < OF_A_ROLE_MAX) world.start(instance.role)
      return
    case 'restart': {
      const { role } = world.start(chance.of(world.roles))
      const [oldest, ...others] = world.of(role)
      if (!oldest || others.length < OF_A_ROLE_MAX) return
      // What it had taken and not done is lost with it, as by any other end.
      world.noted('a process was killed')
      await world.kill(oldest)
      return
    }
    case 'stop':
      if (!instance || instance.isStopping) return
      world.noted('a process was told to end')
      world.stop(instance)
      if (chance.below(2) === 1) world.start(instance.role)
      return
    case 'pause':
      if (!instance) return
      world.noted('a process stood still')
      instance.actor.pausedUntilMs = schedule.nowMs + 1000 * (1 + chance.below(200))
      return
    case 'node':
      return world.nodeFaults.strikeDown()
    case 'clock':
      return world.nodeFaults.strikeClock()
    case 'cut':
      world.noted('all connections to the database ended')
      return world.cutDatabase()
    case 'reorg':
      if (place.depthMax === 0) return
      world.noted('a chain was reorganised')
      await world.control({
        command: 'reorg',
        network: code,
        depth: 1 + chance.below(place.depthMax),
        drop: chance.below(2) === 1,
      })
      return
    default: {
      const row = await world.database.one<{ hash: string; network: string }>(
        `select c.hash, c.network from chain_transactions c where c.network = $1 and c.state = 'SIGNED' and c.hash is not null order by c.id limit 1`,
        [code],
      )
      if (!row) return
      world.noted('a node forgot a transaction')
      await world.control({ command: 'drop', network: code, hash: row.hash }).catch(() => undefined)
    }
  }
}
