import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { loadConfig, type ConfigFile } from '../config.ts'
import { realEnvironment } from '../environment.ts'
import { openLog } from '../log.ts'
import { startNode } from '../node.ts'
import { restoreHome } from '../setup.ts'

export interface Opening {
  home: string
  backup: string
  recoverySecretFile: string
  /** The node's fingerprint as its operator has noted it. Null: only in `local` mode. */
  print: string | null
  /** Address on which this node listens, and address of its only partner. */
  listen: { host: string; port: number }
  partner: { node: number; host: string; port: number }
}

/** Address for a peer that does not take part; nothing listens on it. */
const NOWHERE = { host: '127.0.0.1', port: 1 }

/**
 * Opens a node from its backup alone: its data folder and its shares, with one partner and without
 * platform, database or record. An existing data folder is started again.
 * @returns a function that stops it
 */
export async function openForRecovery({
  backup,
  recoverySecretFile,
  print,
  listen,
  partner,
  ...o
}: Opening): Promise<{ node: number; keys: number; stop(): Promise<void> }> {
  const home = resolve(o.home)
  if (!existsSync(join(home, 'config.json'))) {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    await restoreHome({ home, file: backup, recoverySecretFile, print })
  }
  const file = join(home, 'config.json')
  const config = JSON.parse(readFileSync(file, 'utf8')) as ConfigFile
  if (config.node === partner.node) throw new Error('--peer: must not be this node itself')
  const { host, port } = partner
  const peers = config.peers.map((peer) => ({
    ...peer,
    ...(peer.node === partner.node ? { host, port } : NOWHERE),
  }))
  writeFileSync(file, `${JSON.stringify({ ...config, ...listen, peers }, null, 2)}\n`, {
    mode: 0o600,
  })
  const loaded = loadConfig(home)
  const { parts, stop } = await startNode(
    loaded,
    realEnvironment,
    openLog(loaded.node, () => realEnvironment.now()),
    process.env,
  )
  try {
    const opened = await parts.backups.open({
      file: resolve(backup),
      recovery_secret_file: resolve(recoverySecretFile),
    })
    const { keys } = opened as { keys: number }
    return { node: loaded.node, keys, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
