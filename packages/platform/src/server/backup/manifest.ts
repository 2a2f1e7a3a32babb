import { createHash, timingSafeEqual } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { networkMode } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { reasonOf } from '@custody/chains/reason'
import { differenceOf, listBelow, measureFile, readPlain, type FileEntry } from './folder.ts'
import { isSetting, wrongNames } from './names.ts'
import { SIGNATURE, signManifest, verifyManifest } from './signature.ts'

/**
 * Content list of a backup, stored in it as `manifest.json`. Paths are relative to its folder,
 * sizes in bytes, times ISO 8601. Version 2 contains no settings of the database server; version 1
 * listed them, and they are ignored by a restore.
 */
const manifestSchema = z.strictObject({
  version: z.union([z.literal(1), z.literal(2)]),
  made_at: z.string(),
  platform_version: z.string(),
  network: networkMode,
  database: z.strictObject({
    /**
     * Form of the database's copy. `files`: the embedded server's files with the WAL that makes
     * them consistent. `dump`: pg_dump's custom format.
     */
    form: z.enum(['files', 'dump']),
    postgres: z.int(),
    made_with: z.string(),
    /** Names of the applied migrations. */
    migrations: z.array(z.string()),
    /** WAL position at which the copy was complete; null for a dump. */
    wal_end: z.string().nullable(),
  }),
  /**
   * Whether the backup contains `secrets.sealed`: the secrets key and the platform's client key,
   * encrypted for the recovery key.
   */
  secrets: z.boolean(),
  nodes: z.array(z.strictObject({ node: z.int(), keys: z.int(), record_height: z.int() })),
  /** Empty folders that are required. */
  folders: z.array(z.string()),
  files: z.array(
    z.strictObject({
      path: z.string(),
      bytes: z.int().nonnegative(),
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
    }),
  ),
})
export type Manifest = z.infer<typeof manifestSchema>

/**
 * Data that the operator has and an attacker with write access to the backup folder has not. It
 * proves that the platform wrote the manifest.
 */
export interface Trust {
  /** SHA-256 of `manifest.json` in hex, as printed by `backup`; null: not given. */
  manifestSha256: string | null
  /** Raw Ed25519 public key of the backups' signatures in hex; null: not given. */
  signatureKey: string | null
}
/** How the manifest was verified; null: it was not, so it may have been forged. */
export type Proof = 'signature' | 'hash' | null

export const MANIFEST = 'manifest.json'
export const MANIFEST_VERSION = 2
const MANIFEST_BYTES_MAX = 256 * 1024 ** 2
const SIGNATURE_BYTES_MAX = 4096

/** Returns every file of a folder with its size and hash, sorted by name. */
export async function filesBelow(folder: string): Promise<FileEntry[]> {
  const files: FileEntry[] = []
  for (const [path, { isFolder }] of [...listBelow(folder)].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!isFolder && path !== MANIFEST && path !== SIGNATURE)
      files.push({ path, ...(await measureFile(join(folder, path))) })
  }
  return files
}

/**
 * Writes the manifest and, with a signing key, its signature.
 * @param signingKey seed as returned by `signingKeyOf`; null: not signed
 * @returns the manifest's SHA-256, in hex
 */
export function writeManifest(
  folder: string,
  manifest: Manifest,
  signingKey: string | null,
): string {
  const bytes = Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`)
  const write = (name: string, content: Uint8Array | string): void =>
    writeFileSync(join(folder, name), content, { mode: 0o600, flag: 'wx' })
  write(MANIFEST, bytes)
  if (signingKey !== null) write(SIGNATURE, `${JSON.stringify(signManifest(bytes, signingKey))}\n`)
  return createHash('sha256').update(bytes).digest('hex')
}

/**
 * Verifies the manifest.
 * @throws Error if the operator's hash or key does not match it
 */
function prove(folder: string, bytes: Buffer, { manifestSha256, signatureKey }: Trust): Proof {
  if (manifestSha256 !== null) {
    const hash = createHash('sha256').update(bytes).digest()
    if (!timingSafeEqual(hash, Buffer.from(manifestSha256, 'hex'))) {
      throw new Error(
        `${join(folder, MANIFEST)} does not have the hash of --manifest-sha256: it was changed, or is of another backup`,
      )
    }
    return 'hash'
  }
  if (signatureKey === null) return null
  if (!existsSync(join(folder, SIGNATURE))) {
    throw new Error(
      `${folder} has no signature (${SIGNATURE}): it was removed, or the backup was made without a signing key. Such a backup can be restored only with --manifest-sha256, the hash that "custody backup" printed or that you noted when it was made`,
    )
  }
  try {
    verifyManifest(
      bytes,
      readPlain(join(folder, SIGNATURE), SIGNATURE, SIGNATURE_BYTES_MAX).toString('utf8'),
      signatureKey,
    )
  } catch (error) {
    throw new Error(`${folder} is not authentic: ${reasonOf(error)}`, { cause: error })
  }
  return 'signature'
}

/**
 * Reads the manifest. With a key or a hash it is verified before it is parsed.
 * @throws Error with a sentence that states why the folder is not a valid backup
 */
export function readManifest(folder: string, trust: Trust): { manifest: Manifest; proof: Proof } {
  const path = join(folder, MANIFEST)
  if (!existsSync(path)) throw new Error(`${folder} is not a backup: it has no ${MANIFEST}`)
  const bytes = readPlain(path, MANIFEST, MANIFEST_BYTES_MAX)
  const proof = prove(folder, bytes, trust)
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new Error(`${path} is not JSON`)
  }
  const version = (value as { version?: unknown } | null)?.version
  if (typeof version === 'number' && version > MANIFEST_VERSION) {
    throw new Error(`${path} has format ${version}, which a later version of this platform wrote`)
  }
  const parsed = manifestSchema.safeParse(value)
  if (!parsed.success)
    throw new Error(`${path} is not a manifest: ${z.prettifyError(parsed.error)}`)
  const wrong = wrongNames(parsed.data)
  if (wrong.length > 0)
    throw new Error(`${path} lists files that are not part of a backup: ${shown(wrong)}`)
  return { manifest: parsed.data, proof }
}

const SHOWN_MAX = 10
const shown = (wrong: readonly string[]): string =>
  wrong.slice(0, SHOWN_MAX).join('; ') +
  (wrong.length > SHOWN_MAX ? `; and ${wrong.length - SHOWN_MAX} more` : '')

/** Returns the folders that contain the listed files, and the listed empty folders. */
function foldersOf({ files, folders }: Manifest): Set<string> {
  const existing = new Set<string>()
  for (const path of [
    ...files.map((file) => file.path),
    ...folders.map((name) => `database/${name}/`),
  ]) {
    for (let parent = dirname(`${path}.`); parent !== '.'; parent = dirname(parent))
      existing.add(parent)
  }
  return existing
}

/**
 * Compares each file with its size and hash, and the folder with the manifest: no additional entry,
 * no link, no special file.
 * @throws Error that names everything that is missing, was changed or does not belong there
 */
export async function checkFiles(folder: string, manifest: Manifest): Promise<void> {
  const wrong: string[] = []
  const entries = listBelow(folder)
  const [files, folders] = [
    new Set([MANIFEST, SIGNATURE, ...manifest.files.map(({ path }) => path)]),
    foldersOf(manifest),
  ]
  // Entries that do not belong to the backup are reported first, because a folder that became a
  // link makes every file below it appear missing.
  for (const [path, { isFolder, reason }] of entries) {
    const isKnown = isFolder ? folders.has(path) : files.has(path)
    if (!isKnown)
      wrong.push(`${path} does not belong to the backup${reason === null ? '' : `, and ${reason}`}`)
  }
  for (const file of manifest.files) {
    const entry = entries.get(file.path)
    if (!entry) wrong.push(`${file.path} is missing`)
    else if (entry.isFolder || entry.reason !== null)
      wrong.push(`${file.path} ${entry.reason ?? 'is a folder'}`)
    else {
      const difference = await measureFile(join(folder, file.path)).then(
        (match) => differenceOf(file, match),
        reasonOf,
      )
      if (difference !== null) wrong.push(`${file.path} ${difference}`)
    }
  }
  if (wrong.length > 0) throw new Error(`${folder} is damaged: ${shown(wrong)}`)
}

/**
 * Returns the database files that are restored: all except settings, which the platform writes
 * itself.
 */
export const databaseFiles = ({ files }: Manifest): FileEntry[] =>
  files.filter(({ path }) => path.startsWith('database/') && !isSetting(path))

/** Returns the entry of a file that `wrongNames` requires. */
export const entryOf = ({ files }: Manifest, path: string): FileEntry =>
  files.find((file) => file.path === path) as FileEntry
