import { hasLocalChains, type NetworkMode } from '@custody/chains/mode'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { reasonOf } from '@custody/chains/reason'
import { withNodes } from '../app/local/local.ts'
import { assertPlainFolder, embeddedVersion } from '../../core/database/embedded.ts'
import { assertRestored, identityFolder, RESTORING, signersFolder } from '../../core/data-dir.ts'
import type { NodePeer } from '../../core/signing/nodes.ts'
import { checkExternalEmpty, placeEmbedded, placeExternal, type Recovery } from './database.ts'
import { copyVerified, differenceOf, readPlain } from './folder.ts'
import {
  checkFiles,
  entryOf,
  readManifest,
  type Manifest,
  type Proof,
  type Trust,
} from './manifest.ts'
import { open, sealedSchema } from './sealed.ts'
import { signatureKeyOf, signingKeyOf } from './signature.ts'
import type { AskNode } from './take.ts'

const SETUP = fileURLToPath(new URL('../../../../signer/src/setup.ts', import.meta.url))
const MIGRATIONS = new URL('../../core/database/migrations/', import.meta.url)
const SEALED_BYTES_MAX = 16 * 1024 ** 2

const portsSchema = z.strictObject({
  signers: z.array(z.int().min(1).max(65_535)).length(3),
  devnet: z.int().min(1).max(65_535),
})
/**
 * Secrets in a backup. Only these names are allowed, because they become files outside the
 * database.
 */
const secretsSchema = z.strictObject({
  secrets_key: z.string().nullable(),
  identity: z
    .strictObject({ 'tls.key': z.string(), 'tls.crt': z.string(), 'peers.json': z.string() })
    .partial(),
  ports: z.string().nullable(),
})
type Secrets = z.infer<typeof secretsSchema>

export interface Restore extends Recovery {
  home: string
  from: string
  network: NetworkMode
  databaseUrl: string | null
  secretsKey: string | null
  /** Secret half of the platform's recovery key, in hex; null: secrets are not restored. */
  recoverySecret: string | null
  /** Verifies the manifest. Without a hash and a key, the key is derived from `recoverySecret`. */
  trust: Trust
  /**
   * Files with the recovery secrets of nodes whose data folders are restored here too, by node:
   * `local` only.
   */
  nodeSecrets: ReadonlyMap<number, string>
  askNode: AskNode
  report: (line: string) => void
}

/**
 * Returns the trust with the signature key that is derived from the recovery secret, if the
 * operator gave neither a hash nor a key.
 */
export const trustOf = (trust: Trust, recoverySecret: string | null): Trust =>
  trust.manifestSha256 !== null || trust.signatureKey !== null || recoverySecret === null
    ? trust
    : { manifestSha256: null, signatureKey: signatureKeyOf(signingKeyOf(recoverySecret)) }

/**
 * Compares a backup with its manifest and this version, and verifies the manifest as far as `trust`
 * allows.
 * @throws Error with the reason, before anything is written
 */
export async function verifyBackup(
  from: string,
  trust: Trust,
): Promise<{ manifest: Manifest; proof: Proof }> {
  const { manifest, proof } = readManifest(from, trust)
  await checkFiles(from, manifest)
  const existing = new Set(readdirSync(MIGRATIONS))
  const later = manifest.database.migrations.filter((name) => !existing.has(name))
  if (later.length > 0) {
    const version = `another version of this platform (${manifest.platform_version})`
    throw new Error(
      `${from} was made by ${version}, which has the migrations ${later.join(', ')}: restore it with that version`,
    )
  }
  return { manifest, proof }
}

/**
 * Decrypts the secrets in memory, and checks them before anything is written.
 * @throws Error
 */
function secretsOf(
  { from, recoverySecret, secretsKey }: Restore,
  manifest: Manifest,
): Secrets | null {
  if (recoverySecret === null) return null
  if (!manifest.secrets)
    throw new Error(`${from} contains no secrets: restore it with --without-secrets`)
  const name = 'secrets.sealed'
  const bytes = readPlain(join(from, name), name, SEALED_BYTES_MAX)
  const match = { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
  const difference = differenceOf(entryOf(manifest, name), match)
  if (difference !== null) throw new Error(`${name} ${difference}`)
  const text = open(sealedSchema.parse(JSON.parse(bytes.toString('utf8'))), recoverySecret)
  const parsed = secretsSchema.safeParse(JSON.parse(text))
  // The values are secret, so only their names are shown.
  if (!parsed.success) {
    throw new Error(
      `${name} contains fields that a backup does not have: ${parsed.error.issues.map(({ path }) => path.join('.')).join(', ')}`,
    )
  }
  const secrets = parsed.data
  if (secrets.ports !== null) portsSchema.parse(JSON.parse(secrets.ports))
  if (secrets.secrets_key !== null && secretsKey !== null && secrets.secrets_key !== secretsKey) {
    throw new Error('CUSTODY_SECRETS_KEY is not the key of the backup')
  }
  return secrets
}

const write = (path: string, text: string | Uint8Array): void =>
  writeFileSync(path, text, { mode: 0o600, flag: 'wx' })

/**
 * Writes the secrets to their files.
 * @param written receives the name of each file, so that after a later failure those outside the
 *   data folder can be removed
 */
function placeSecrets(
  { home, secretsKey }: Restore,
  { secrets_key, identity, ports }: Secrets,
  written: string[],
): void {
  const place = (path: string, content: string | Uint8Array): void => {
    write(path, content)
    written.push(path)
  }
  // A key that is set in the environment is not written next to the database.
  if (secrets_key !== null && secretsKey === null)
    place(join(home, 'secrets.key'), Buffer.from(secrets_key, 'base64'))
  const folder = identityFolder(home)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const [name, text] of Object.entries(identity)) place(join(folder, name), text)
  if (ports !== null) place(join(home, 'ports.json'), ports)
}

/**
 * Restores the three data folders of `local` from the nodes' own backups; then each node reads what
 * its peers have recorded, which adds nothing.
 */
async function placeNodes(
  { home, from, nodeSecrets, askNode, report }: Restore,
  manifest: Manifest,
): Promise<void> {
  const file = join(identityFolder(home), 'peers.json')
  const listed = JSON.parse(readFileSync(file, 'utf8')) as { nodes: NodePeer[] }
  const copies = join(home, 'node-backups')
  mkdirSync(copies, { mode: 0o700 })
  const copyOf = (node: number): string => join(copies, `node-${node}.json`)
  for (const { node } of listed.nodes) {
    if (!nodeSecrets.has(node))
      throw new Error(`peers.json contains node ${node}, which --node-secrets does not`)
    await copyVerified(from, entryOf(manifest, `nodes/node-${node}.json`), copyOf(node))
  }
  for (const signer of listed.nodes) {
    const nodeHome = join(signersFolder(home), `node-${signer.node}`)
    const made = spawnSync(
      process.execPath,
      [
        SETUP,
        '--home',
        nodeHome,
        '--restore',
        copyOf(signer.node),
        '--recovery-secret-file',
        nodeSecrets.get(signer.node) as string,
      ],
      { encoding: 'utf8' },
    )
    if (made.status !== 0)
      throw new Error(`node ${signer.node}: ${(made.stderr || made.stdout).trim().slice(-800)}`)
    const { socket } = JSON.parse(readFileSync(join(nodeHome, 'config.json'), 'utf8')) as {
      socket: string
    }
    Object.assign(signer, { socket, home: nodeHome })
  }
  writeFileSync(file, `${JSON.stringify(listed, null, 2)}\n`, { mode: 0o600 })
  const named = ({ node }: NodePeer) => ({
    file: copyOf(node),
    recovery_secret_file: nodeSecrets.get(node),
  })
  await withNodes(home, async () => {
    // Each node must have read its backup before its peers can read from it; errors of this loop
    // occur again below and are reported there.
    for (const signer of listed.nodes)
      await askNode(signer, 'restore', { ...named(signer), preview: true }).catch(() => undefined)
    for (const signer of listed.nodes) {
      const answer = (await askNode(signer, 'restore', named(signer))) as { keys: number }
      report(`node ${signer.node}: ${answer.keys} keys`)
    }
  })
  rmSync(copies, { recursive: true })
}

/**
 * Checks the data folder, and the identity folder that CUSTODY_SIGNERS names: no links, and no
 * files that would be overwritten.
 * @throws Error
 */
function checkPlaces({ home, recoverySecret }: Restore): void {
  assertRestored(home)
  const isLink = (path: string): boolean =>
    lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
  if (isLink(home))
    throw new Error(`${home} is a symbolic link: set CUSTODY_HOME to the folder itself`)
  if (existsSync(home) && readdirSync(home).length > 0)
    throw new Error(`${home} is not empty: a backup can be restored only into an empty folder`)
  if (recoverySecret === null) return
  const folder = identityFolder(home)
  if (isLink(folder))
    throw new Error(`${folder} is a symbolic link: set CUSTODY_SIGNERS to the folder itself`)
  for (const name of Object.keys(secretsSchema.shape.identity.shape)) {
    if (lstatSync(join(folder, name), { throwIfNoEntry: false })) {
      throw new Error(
        `${join(folder, name)} already exists, and a restore never overwrites it: choose an empty folder`,
      )
    }
  }
}

function checkTarget(
  { databaseUrl, from, nodeSecrets, network, wal, archive }: Restore,
  manifest: Manifest,
): void {
  if (manifest.network !== network)
    throw new Error(
      `${from} was made with CUSTODY_NETWORK=${manifest.network}; here it is ${network}`,
    )
  const { form, postgres } = manifest.database
  if (form === 'dump' && databaseUrl === null)
    throw new Error(
      `${from} is a backup of an external database: set DATABASE_URL to an empty database`,
    )
  if (form === 'files' && databaseUrl !== null)
    throw new Error(`${from} is a backup of an embedded database: restore it without DATABASE_URL`)
  if (form === 'files' && postgres !== embeddedVersion()) {
    const brought = `and this platform brings ${embeddedVersion()}`
    throw new Error(
      `${from} was made with PostgreSQL ${postgres}, ${brought}: restore it with the version that made it`,
    )
  }
  if (wal !== null && form === 'dump') {
    throw new Error(
      '--wal: a dump contains no log; use your own PostgreSQL’s point-in-time recovery',
    )
  }
  if (wal !== null) assertPlainFolder(wal, '--wal')
  if (archive !== null) assertPlainFolder(archive, 'CUSTODY_WAL_ARCHIVE')
  if (wal !== null && !existsSync(wal)) throw new Error(`--wal: the folder ${wal} does not exist`)
  if (nodeSecrets.size === 0) return
  if (!hasLocalChains(network))
    throw new Error(
      '--node-secrets is for local only: elsewhere each operator restores the node on its own host',
    )
  const missing = [1, 2, 3].filter(
    (node) => !nodeSecrets.has(node) || !manifest.nodes.some((each) => each.node === node),
  )
  if (missing.length > 0)
    throw new Error(
      `--node-secrets: no secret is given for node ${missing.join(', ')}, or the backup does not contain it`,
    )
}

const LOG_LINES = 5
const LOG_CHARACTERS_MAX = 1500

/**
 * Replaces the path of each log that a reason mentions with the end of the log, because the log is
 * deleted with the data folder.
 */
function withLogs(reason: string, home: string): string {
  return reason.replaceAll(/see (.+?\.log)\b/g, (all, path: string) => {
    if (!path.startsWith(`${home}/`) || !existsSync(path)) return all
    const lines = readFileSync(path, 'utf8').trim().split('\n').slice(-LOG_LINES)
    return `its log ends with: ${lines.join(' | ').slice(-LOG_CHARACTERS_MAX)}`
  })
}

/**
 * Restores a backup to an empty data folder. Everything is checked first; after a later failure,
 * all written files are removed, so that the restore can be repeated. An embedded database
 * completes its recovery before any key is decrypted into the data folder, because its server runs
 * as this user. The operator's own database server has no access to the data folder; its database
 * is restored last, in one transaction, so that a full database never exists without its nodes.
 * @throws Error
 */
export async function restoreBackup(restore: Restore): Promise<Manifest> {
  const { home, from, databaseUrl, recoverySecret, nodeSecrets, wal, report } = restore
  const trust = trustOf(restore.trust, recoverySecret)
  if (trust.manifestSha256 === null && trust.signatureKey === null) {
    throw new Error(
      '--recovery-secret, --recovery-key or --manifest-sha256 is required: a backup is restored only if its authenticity is proven',
    )
  }
  const { manifest, proof } = await verifyBackup(from, trust)
  const proved =
    proof === 'hash'
      ? 'the manifest has the given hash'
      : 'the manifest is signed by the recovery key'
  report(
    `${from}: ${proved}, and ${manifest.files.length} files match it; made ${manifest.made_at}`,
  )
  checkPlaces(restore)
  checkTarget(restore, manifest)
  if (databaseUrl !== null) await checkExternalEmpty(databaseUrl)
  const secrets = secretsOf(restore, manifest)
  if (nodeSecrets.size > 0 && secrets === null)
    throw new Error('--node-secrets also requires the secrets of the platform')
  if (wal !== null)
    report(
      `WARNING: the archived log in ${wal} is not signed: restore it only where nobody else can write to that folder`,
    )
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const unfinished = join(home, RESTORING)
  write(unfinished, '')
  const written: string[] = []
  const placeKeys = async (): Promise<void> => {
    if (secrets) {
      placeSecrets(restore, secrets, written)
      report('secrets: restored')
    }
    if (nodeSecrets.size > 0) await placeNodes(restore, manifest)
  }
  const placeDatabase = async (): Promise<void> => {
    if (databaseUrl === null) await placeEmbedded(home, from, manifest, restore)
    // The dump is restored in one transaction, so a failure leaves nothing in the database.
    else await placeExternal(home, databaseUrl, from, manifest)
    report('database: restored')
  }
  try {
    for (const step of databaseUrl === null
      ? [placeDatabase, placeKeys]
      : [placeKeys, placeDatabase])
      await step()
    rmSync(unfinished)
    return manifest
  } catch (error) {
    const reason = withLogs(reasonOf(error), home)
    for (const path of written) rmSync(path, { force: true })
    for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true, force: true })
    const places = databaseUrl === null ? home : `${home} and in the database`
    const again = 'correct this, and run the same command again'
    throw new Error(`${reason}; the partial restore was removed from ${places}: ${again}`, {
      cause: error,
    })
  }
}
