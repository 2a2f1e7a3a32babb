import type { NetworkMode } from '@custody/chains/mode'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import packageFile from '../../../package.json' with { type: 'json' }
import { identityFolder } from '../../core/data-dir.ts'
import type { NodePeer } from '../../core/signing/nodes.ts'
import { takeEmbedded, takeExternal } from './database.ts'
import { syncBelow } from './folder.ts'
import { filesBelow, MANIFEST, MANIFEST_VERSION, writeManifest, type Manifest } from './manifest.ts'
import { wrongNames } from './names.ts'
import { seal } from './sealed.ts'

/** Sends a request to a node's operator socket. */
export type AskNode = (
  signer: NodePeer,
  command: string,
  body: Record<string, unknown>,
) => Promise<unknown>

export interface Backup {
  home: string
  out: string
  network: NetworkMode
  databaseUrl: string | null
  walArchive: string | null
  /** CUSTODY_SECRETS_KEY; null: the file in the data folder. */
  secretsKey: string | null
  /** Public half of the platform's recovery key, in hex; null: secrets are not included. */
  recoveryKey: string | null
  /**
   * Seed that signs the manifest, in hex; null: the manifest is not signed, and only its hash can
   * verify it.
   */
  signingKey: string | null
  withNodes: boolean
  askNode: AskNode
  /** Called with a progress line for each part. */
  report: (line: string) => void
  clock: () => Date
}

/**
 * Secret files of the platform, and files that cannot be generated again: their paths, and their
 * names in the backup.
 */
const IDENTITY = ['tls.key', 'tls.crt', 'peers.json']

/** Returns the secrets as JSON: the secrets key in base64, and files by name. */
function secretsOf({ home, secretsKey }: Backup): string {
  const file = join(home, 'secrets.key')
  const key = secretsKey ?? (existsSync(file) ? readFileSync(file).toString('base64') : null)
  const identity = identityFolder(home)
  const files = Object.fromEntries(
    IDENTITY.filter((name) => existsSync(join(identity, name))).map((name) => [
      name,
      readFileSync(join(identity, name), 'utf8'),
    ]),
  )
  const ports = join(home, 'ports.json')
  return JSON.stringify({
    secrets_key: key,
    identity: files,
    ports: existsSync(ports) ? readFileSync(ports, 'utf8') : null,
  })
}

const mebibytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MiB`

async function takeNodes(
  { home, withNodes, askNode, report }: Backup,
  to: string,
): Promise<Manifest['nodes']> {
  if (!withNodes) {
    report('nodes: omitted as requested; each operator runs "npx custody signer backup"')
    return []
  }
  const file = join(identityFolder(home), 'peers.json')
  if (!existsSync(file)) throw new Error(`nodes: ${file} does not exist`)
  const { nodes } = JSON.parse(readFileSync(file, 'utf8')) as { nodes: NodePeer[] }
  const taken: Manifest['nodes'] = []
  const missing: string[] = []
  mkdirSync(join(to, 'nodes'), { mode: 0o700 })
  for (const signer of nodes) {
    try {
      if (signer.socket === undefined)
        throw new Error('runs on another host, where its operator runs "npx custody signer backup"')
      const made = (await askNode(signer, 'backup', {
        file: join(to, 'nodes', `node-${signer.node}.json`),
      })) as { keys: number }
      const { record } = (await askNode(signer, 'status', {})) as { record: { height: number } }
      taken.push({ node: signer.node, keys: made.keys, record_height: record.height })
      report(
        `node ${signer.node}: ${made.keys} keys, encrypted to its recovery key; record ${record.height}`,
      )
    } catch (error) {
      missing.push(`node ${signer.node}: ${reasonOf(error)}`)
    }
  }
  if (missing.length > 0)
    throw new Error(`${missing.join('; ')}. With --without-nodes a backup is made without them`)
  return taken
}

/**
 * Creates the folder in which a backup is written before it gets its final name.
 * @throws Error if the backup or the folder exists already, or the data folder does not exist
 */
function createDraft(draft: string, { home, out }: Pick<Backup, 'home' | 'out'>): void {
  if (existsSync(out)) throw new Error(`${out} already exists; choose another folder`)
  if (!existsSync(home)) throw new Error(`the home ${home} does not exist`)
  mkdirSync(dirname(out), { recursive: true, mode: 0o700 })
  try {
    mkdirSync(draft, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new Error(
      `${draft} exists: another backup is in progress, or one was interrupted; remove it if none is running`,
      { cause: error },
    )
  }
}

/**
 * Creates a backup: database, secrets, nodes, and a manifest of all of them. The folder gets its
 * final name only after everything has been flushed to disk. Nodes are backed up after the
 * database, so that they never have fewer records than it does.
 * @throws Error if a part is missing; nothing remains then
 */
export async function takeBackup(
  backup: Backup,
): Promise<{ manifest: Manifest; manifestSha256: string; bytes: number }> {
  const { home, out, network, databaseUrl, walArchive, recoveryKey, signingKey, report, clock } =
    backup
  const draft = `${out}.partial`
  createDraft(draft, { home, out })
  try {
    const at = clock()
    const folder = join(draft, 'database')
    const { folders, ...database } =
      databaseUrl === null
        ? await takeEmbedded(home, folder, walArchive, report)
        : await takeExternal(databaseUrl, folder)
    report(
      `database: PostgreSQL ${database.postgres}, ${database.migrations.length} migrations (${database.made_with})`,
    )
    if (recoveryKey === null)
      report(
        'secrets: omitted as requested; without them, stored tokens of external services and the client key are lost',
      )
    else {
      writeFileSync(
        join(draft, 'secrets.sealed'),
        JSON.stringify(seal(secretsOf(backup), recoveryKey)),
        { mode: 0o600 },
      )
      report('secrets: secrets key and client key, encrypted to the recovery key')
    }
    const nodes = await takeNodes(backup, draft)
    const files = await filesBelow(draft)
    const manifest: Manifest = {
      version: MANIFEST_VERSION,
      made_at: at.toISOString(),
      platform_version: packageFile.version,
      network,
      database,
      secrets: recoveryKey !== null,
      nodes,
      folders,
      files,
    }
    const wrong = wrongNames(manifest)
    if (wrong.length > 0)
      throw new Error(
        `${home} contains files that cannot be part of a backup; move them away: ${wrong.slice(0, 10).join('; ')}`,
      )
    const manifestSha256 = writeManifest(draft, manifest, signingKey)
    syncBelow(draft)
    renameSync(draft, out)
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    report(
      `${MANIFEST}: ${files.length} files, ${mebibytes(bytes)}, ${signingKey === null ? 'not signed' : 'signed'}`,
    )
    if (signingKey === null) {
      report(
        'WARNING: the manifest is not signed. Store its hash where a writer to the backups cannot change it: without the hash, the backup cannot be restored. npx custody backup-key creates a signing key',
      )
    }
    report(`${MANIFEST} SHA-256: ${manifestSha256}`)
    return { manifest, manifestSha256, bytes }
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    throw error
  }
}
