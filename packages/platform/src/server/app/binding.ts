import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NetworkMode } from '@custody/chains'
import { signersFolder } from '../../core/data-dir.ts'
import type { Database } from '../../core/database/pool.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { heardStatus } from '../../core/signing/status.ts'

// A data folder, database or signer node belongs to one network permanently. Refusing to start is
// better than showing test coins as real money, or an audit that compares with the wrong chain.

/** File in the data folder that contains the name of its network. */
const FILE = 'network'

const refusal = (wanted: NetworkMode, what: string, existing: string, instead: string): Error =>
  new Error(
    `CUSTODY_NETWORK=${wanted}: ${what} belongs to the network "${existing}", with which it was first started; ${instead}`,
  )

/**
 * Returns the mode of the nodes that were set up in a data folder; null if there are none. They exist
 * before the first successful start, and earlier versions wrote no other file with the mode.
 */
function nodesMode(home: string): string | null {
  const file = join(signersFolder(home), 'platform', 'peers.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { mode: string }).mode : null
}

/**
 * Checks the network of a data folder, before anything is started in it.
 * @throws Error that says what to do if the folder belongs to another network
 */
export function checkHome(home: string, network: NetworkMode): void {
  const file = join(home, FILE)
  const existing = existsSync(file)
    ? readFileSync(file, 'utf8').trim()
    : (nodesMode(home) ?? network)
  if (existing !== network)
    throw refusal(network, `the home ${home}`, existing, 'set CUSTODY_HOME to another folder')
}

/** Binds a data folder to the network of its first successful start. */
export function bindHome(home: string, network: NetworkMode): void {
  checkHome(home, network)
  if (!existsSync(join(home, FILE)))
    writeFileSync(join(home, FILE), `${network}\n`, { mode: 0o600 })
}

const checkKnown = (row: { network: string } | undefined, network: NetworkMode): void => {
  if (row && row.network !== network)
    throw refusal(network, 'this database', row.network, 'set DATABASE_URL to another database')
}

/**
 * Like {@link checkHome} for a database, before it is migrated, because the platform of another
 * network may have another version.
 */
export async function checkDatabaseNetwork(
  database: Database,
  network: NetworkMode,
): Promise<void> {
  const there = await database.one<{ table: string | null }>(
    `select to_regclass('installation')::text "table"`,
  )
  if (there?.table)
    checkKnown(await database.one<{ network: string }>('select network from installation'), network)
}

/** Binds a database to the network of its first successful start, in the table `installation`. */
export async function bindDatabase(database: Database, network: NetworkMode): Promise<void> {
  checkKnown(
    await database.one<{ network: string }>(
      `with made as (insert into installation (network) values ($1) on conflict do nothing
        returning network)
     select network from made union all select network from installation limit 1`,
      [network],
    ),
    network,
  )
}

/**
 * Checks the network of the signer nodes. Does not wait for an unreachable node: its keys are
 * certified for its network, and keys of another network are refused whenever they are read.
 */
export async function checkNodesNetwork(signers: SignerNodes, network: NetworkMode): Promise<void> {
  for (const { node, status } of await heardStatus(signers)) {
    if (status && status.mode !== network) {
      throw refusal(
        network,
        `signer node ${node}`,
        status.mode,
        'set CUSTODY_SIGNERS to the folder of this network’s nodes',
      )
    }
  }
}
