import { createHash } from 'node:crypto'
import { closeSync, createReadStream, existsSync, fsyncSync, openSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'

/** What a backup holds, beside it as `manifest.json`. Paths are relative to its folder, sizes in bytes, times ISO 8601. */
const manifestSchema = z.strictObject({
  version: z.literal(1),
  made_at: z.string(),
  platform_version: z.string(),
  network: z.string(),
  database: z.strictObject({
    /** `files`: the embedded server's own, with the log that makes them consistent. `dump`: pg_dump's custom format. */
    form: z.enum(['files', 'dump']),
    postgres: z.int(),
    made_with: z.string(),
    /** Names of the migrations that were applied. */
    migrations: z.array(z.string()),
    /** Where the log stood when the copy was complete; null for a dump. */
    wal_end: z.string().nullable(),
  }),
  /** Whether `secrets.sealed` is there: the secrets key and the platform's client key, sealed to the recovery key. */
  secrets: z.boolean(),
  nodes: z.array(z.strictObject({ node: z.int(), keys: z.int(), record_height: z.int() })),
  /** Folders that are empty and needed. */
  folders: z.array(z.string()),
  files: z.array(z.strictObject({ path: z.string(), bytes: z.int(), sha256: z.string().regex(/^[0-9a-f]{64}$/) })),
})
export type Manifest = z.infer<typeof manifestSchema>

export const MANIFEST = 'manifest.json'

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

function* below(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* below(path)
    else yield path
  }
}

/** Every file of a folder with its size and hash, in the order of their names. */
export async function filesBelow(folder: string): Promise<Manifest['files']> {
  const files: Manifest['files'] = []
  for (const path of [...below(folder)].sort()) {
    const name = relative(folder, path)
    if (name !== MANIFEST) files.push({ path: name, bytes: statSync(path).size, sha256: await hashOf(path) })
  }
  return files
}

function sync(path: string): void {
  const handle = openSync(path, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

/** Has everything of a folder on the disk, before the folder gets its own name. */
export function syncBelow(folder: string): void {
  const folders = new Set([folder])
  for (const path of below(folder)) {
    sync(path)
    folders.add(join(path, '..'))
  }
  for (const each of folders) sync(each)
}

export const writeManifest = (folder: string, manifest: Manifest): void =>
  writeFileSync(join(folder, MANIFEST), `${JSON.stringify(manifest, null, 1)}\n`, { mode: 0o600, flag: 'wx' })

/** @throws Error with a sentence about what the folder is not */
export function readManifest(folder: string): Manifest {
  const path = join(folder, MANIFEST)
  if (!existsSync(path)) throw new Error(`${folder} is no backup: it has no ${MANIFEST}`)
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    throw new Error(`${path} is not JSON`)
  }
  const version = (value as { version?: unknown } | null)?.version
  if (typeof version === 'number' && version > 1) {
    throw new Error(`${path} is of form ${version}, which a later version of this platform wrote`)
  }
  const parsed = manifestSchema.safeParse(value)
  if (!parsed.success) throw new Error(`${path} is not a manifest: ${z.prettifyError(parsed.error)}`)
  for (const name of [...parsed.data.files.map((file) => file.path), ...parsed.data.folders]) {
    if (name.startsWith('/') || name.split('/').includes('..')) throw new Error(`${path} names ${name}, which is outside the backup`)
  }
  return parsed.data
}

const SHOWN_MAX = 10

/** Holds each file against its size and hash. @throws Error that names what is missing or was changed, all of it */
export async function checkFiles(folder: string, manifest: Manifest): Promise<void> {
  const wrong: string[] = []
  for (const { path, bytes, sha256 } of manifest.files) {
    const found = statSync(join(folder, path), { throwIfNoEntry: false })
    if (!found?.isFile()) wrong.push(`${path} is missing`)
    else if (found.size !== bytes) wrong.push(`${path} has ${found.size} bytes, not ${bytes}`)
    else if (await hashOf(join(folder, path)) !== sha256) wrong.push(`${path} was changed`)
  }
  const known = new Set(manifest.files.map(({ path }) => path))
  for (const path of below(folder)) {
    const name = relative(folder, path)
    if (name !== MANIFEST && !known.has(name)) wrong.push(`${name} is not of the backup`)
  }
  const more = wrong.length > SHOWN_MAX ? `; and ${wrong.length - SHOWN_MAX} more` : ''
  if (wrong.length > 0) throw new Error(`${folder} is damaged: ${wrong.slice(0, SHOWN_MAX).join('; ')}${more}`)
}
