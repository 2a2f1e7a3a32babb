import { spawnSync } from 'node:child_process'
import { createHash, generateKeyPairSync } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Caches test data that many tests use, is expensive to create and never differs: it is created
 * once for each state of the sources, stored next to the installed packages, and copied. If two
 * processes create it concurrently, the data of one of them is kept.
 */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const CACHE = join(ROOT, 'node_modules', '.cache', 'test')

/**
 * Time in milliseconds after the last use when data of other sources is deleted, because no run
 * uses it any more. A changed copy of the tree may share the folder.
 */
const UNUSED_MS = 3600_000

/** Returns a hash of the content of folders or files, independent of where the tree is. */
function digest(paths: readonly string[]): string {
  const hash = createHash('sha256')
  for (const path of paths.map((each) => join(ROOT, each))) {
    const files = statSync(path).isDirectory()
      ? globSync('**/*', { cwd: path })
          .sort()
          .map((name) => join(path, name))
      : [path]
    for (const file of files)
      if (statSync(file).isFile())
        hash.update(`${relative(ROOT, file)}\0`).update(readFileSync(file))
  }
  return hash.digest('hex').slice(0, 16)
}

/** Returns the folder that `make` fills; its content depends only on `sources`. */
export async function prepared(
  name: string,
  sources: readonly string[],
  make: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(CACHE, `${name}-${digest(sources)}`)
  const now = new Date()
  if (existsSync(folder)) {
    utimesSync(folder, now, now)
    return folder
  }
  mkdirSync(CACHE, { recursive: true })
  const draft = mkdtempSync(join(CACHE, 'draft-'))
  try {
    await make(draft)
    for (const old of readdirSync(CACHE)
      .filter((each) => each.startsWith(`${name}-`))
      .map((each) => join(CACHE, each))) {
      const lastUsed = statSync(old, { throwIfNoEntry: false })?.mtimeMs ?? Infinity
      if (old !== folder && lastUsed < now.getTime() - UNUSED_MS)
        rmSync(old, { recursive: true, force: true })
    }
    if (!existsSync(folder)) renameSync(draft, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
  return folder
}

/**
 * Returns the RSA key of the tests' callers, as PEM. Generating one takes half a second of
 * processor time.
 */
export async function callerKey(): Promise<{ privateKey: string; publicKey: string }> {
  const folder = await prepared(
    'caller',
    ['packages/signer/testing/prepared.ts'],
    async (draft) => {
      const pair = generateKeyPairSync('rsa', {
        modulusLength: 4096,
        privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
        publicKeyEncoding: { type: 'spki', format: 'pem' },
      })
      for (const [name, pem] of Object.entries(pair))
        writeFileSync(join(draft, name), pem, { mode: 0o600 })
    },
  )
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  return { privateKey: read('privateKey'), publicKey: read('publicKey') }
}

/** Copies the content of a folder into another one; modes and owners are kept. */
export function copyOf(folder: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 })
  const { status, stderr } = spawnSync('cp', ['-a', `${folder}/.`, to], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`cannot copy ${folder}: ${stderr}`)
}
