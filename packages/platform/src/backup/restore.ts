import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { reasonOf } from '@custody/chains/reason'
import { identityFolder, signersFolder, withNodes } from '../app/local.ts'
import { embeddedVersion } from '../database/embedded.ts'
import { assertRestored, RESTORING } from '../home.ts'
import type { NodePeer } from '../signing/nodes.ts'
import { checkExternalEmpty, placeEmbedded, placeExternal, type Recovery } from './database.ts'
import { checkFiles, readManifest, type Manifest } from './manifest.ts'
import { open, sealedSchema } from './sealed.ts'
import type { AskNode } from './take.ts'

const SETUP = fileURLToPath(new URL('../../../signer/src/setup.ts', import.meta.url))
const MIGRATIONS = new URL('../database/migrations/', import.meta.url)

const secretsSchema = z.strictObject({
  secrets_key: z.string().nullable(), identity: z.record(z.string(), z.string()), ports: z.string().nullable(),
})
type Secrets = z.infer<typeof secretsSchema>

export interface Restore extends Recovery {
  home: string
  from: string
  network: string
  databaseUrl: string | null
  secretsKey: string | null
  /** Secret half of the platform's recovery key, in hex; null: secrets are not restored. */
  recoverySecret: string | null
  /** Files with the recovery secrets of nodes whose homes are restored here too, by node: `local` only. */
  nodeSecrets: ReadonlyMap<number, string>
  askNode: AskNode
  tell: (line: string) => void
}

/**
 * Holds a backup against its manifest and this version.
 * @throws Error with what is wrong, before anything is written anywhere
 */
export async function verifyBackup(from: string): Promise<Manifest> {
  const manifest = readManifest(from)
  await checkFiles(from, manifest)
  const known = new Set(readdirSync(MIGRATIONS))
  const later = manifest.database.migrations.filter((name) => !known.has(name))
  if (later.length > 0) {
    const version = `another version of this platform (${manifest.platform_version})`
    throw new Error(`${from} was made by ${version}, which knows ${later.join(', ')}: restore it with that one`)
  }
  return manifest
}

function secretsOf({ from, recoverySecret }: Restore, manifest: Manifest): Secrets | null {
  if (recoverySecret === null) return null
  if (!manifest.secrets) throw new Error(`${from} holds no secrets: restore it with --without-secrets`)
  const sealed = sealedSchema.parse(JSON.parse(readFileSync(join(from, 'secrets.sealed'), 'utf8')))
  return secretsSchema.parse(JSON.parse(open(sealed, recoverySecret)))
}

const write = (path: string, text: string | Uint8Array): void => writeFileSync(path, text, { mode: 0o600, flag: 'wx' })

function placeSecrets(home: string, { secrets_key, identity, ports }: Secrets, secretsKey: string | null): void {
  // One that is given by the environment is not written beside the database.
  if (secrets_key !== null && secretsKey === null) write(join(home, 'secrets.key'), Buffer.from(secrets_key, 'base64'))
  if (secrets_key !== null && secretsKey !== null && secrets_key !== secretsKey) {
    throw new Error('CUSTODY_SECRETS_KEY is another key than that of the backup')
  }
  const folder = identityFolder(home)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const [name, text] of Object.entries(identity)) write(join(folder, name), text)
  if (ports !== null) write(join(home, 'ports.json'), ports)
}

/** The three homes of `local`, from the nodes' own backups; then each takes what its peers recorded, which is nothing. */
async function placeNodes({ home, from, nodeSecrets, askNode, tell }: Restore): Promise<void> {
  const file = join(identityFolder(home), 'peers.json')
  const listed = JSON.parse(readFileSync(file, 'utf8')) as { nodes: NodePeer[] }
  for (const signer of listed.nodes) {
    const nodeHome = join(signersFolder(home), `node-${signer.node}`)
    const made = spawnSync(process.execPath, [
      SETUP, '--home', nodeHome, '--restore', join(from, 'nodes', `node-${signer.node}.json`),
      '--recovery-secret-file', nodeSecrets.get(signer.node) as string,
    ], { encoding: 'utf8' })
    if (made.status !== 0) throw new Error(`node ${signer.node}: ${(made.stderr || made.stdout).trim().slice(-800)}`)
    const { socket } = JSON.parse(readFileSync(join(nodeHome, 'config.json'), 'utf8')) as { socket: string }
    Object.assign(signer, { socket, home: nodeHome })
  }
  writeFileSync(file, `${JSON.stringify(listed, null, 2)}\n`, { mode: 0o600 })
  const named = ({ node }: NodePeer) => ({
    file: join(from, 'nodes', `node-${node}.json`), recovery_secret_file: nodeSecrets.get(node),
  })
  await withNodes(home, async () => {
    // Each must have read its backup before a peer can be told what that says; what fails here fails again below, and is told.
    for (const signer of listed.nodes) await askNode(signer, 'restore', { ...named(signer), preview: true }).catch(() => undefined)
    for (const signer of listed.nodes) {
      const answer = await askNode(signer, 'restore', named(signer)) as { keys: number }
      tell(`node ${signer.node}: ${answer.keys} keys`)
    }
  })
}

function checkTarget({ home, databaseUrl, from, nodeSecrets, network, wal }: Restore, manifest: Manifest): void {
  assertRestored(home)
  if (existsSync(home) && readdirSync(home).length > 0) throw new Error(`${home} is not empty: nothing is restored over what is there`)
  if (manifest.network !== network) throw new Error(`${from} is of CUSTODY_NETWORK=${manifest.network}, and ${network} is set here`)
  const { form, postgres } = manifest.database
  if (form === 'dump' && databaseUrl === null) throw new Error(`${from} is of a database of your own: set DATABASE_URL to an empty one`)
  if (form === 'files' && databaseUrl !== null) throw new Error(`${from} is of an embedded database: restore it without DATABASE_URL`)
  if (form === 'files' && postgres !== embeddedVersion()) {
    const brought = `and this platform brings ${embeddedVersion()}`
    throw new Error(`${from} is of PostgreSQL ${postgres}, ${brought}: restore it with the version that made it`)
  }
  if (wal !== null && form === 'dump') {
    throw new Error('--wal: a dump has no log; your own PostgreSQL restores to a point in time by itself')
  }
  if (wal !== null && !existsSync(wal)) throw new Error(`--wal: there is no folder ${wal}`)
  if (nodeSecrets.size === 0) return
  if (network !== 'local') throw new Error('--node-secrets is for local: each node is restored by its operator, on its own host')
  const missing = [1, 2, 3].filter((node) => !nodeSecrets.has(node) || !manifest.nodes.some((each) => each.node === node))
  if (missing.length > 0) throw new Error(`--node-secrets: node ${missing.join(', ')} has no secret named, or is not in the backup`)
}

/**
 * Restores a backup on an empty home. Everything is checked first; what was written is removed where something fails later, so that
 * it can be tried again. The database comes last: one that is full never stands beside nodes that know nothing of it.
 * @throws Error
 */
export async function restoreBackup(restore: Restore): Promise<Manifest> {
  const { home, from, databaseUrl, secretsKey, tell } = restore
  const manifest = await verifyBackup(from)
  tell(`${from}: ${manifest.files.length} files are as the manifest says, made ${manifest.made_at}`)
  checkTarget(restore, manifest)
  if (databaseUrl !== null) await checkExternalEmpty(databaseUrl)
  const secrets = secretsOf(restore, manifest)
  if (restore.nodeSecrets.size > 0 && secrets === null) throw new Error('--node-secrets needs the secrets of the platform too')
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const unfinished = join(home, RESTORING)
  write(unfinished, '')
  try {
    if (secrets) {
      placeSecrets(home, secrets, secretsKey)
      tell('secrets: restored')
    }
    if (restore.nodeSecrets.size > 0) await placeNodes(restore)
    // In one transaction where the database is the operator's own: what failed before has left nothing in it.
    if (databaseUrl === null) await placeEmbedded(home, join(from, 'database'), manifest.folders, restore)
    else placeExternal(databaseUrl, join(from, 'database'))
    tell('database: restored')
    rmSync(unfinished)
    return manifest
  } catch (error) {
    for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true, force: true })
    const places = databaseUrl === null ? home : `${home} and in the database`
    const again = 'put that right, and run the same command again'
    throw new Error(`${reasonOf(error)}; nothing of it is left in ${places}: ${again}`, { cause: error })
  }
}
