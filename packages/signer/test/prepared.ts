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
 * What many tests start from, is dear to make and always the same: made once for a state of the
 * sources, kept beside the installed packages, and copied. Two who make it at once both make it,
 * and one's is kept.
 */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const CACHE = join(ROOT, 'node_modules', '.cache', 'test')

/**
 * So long after it was last asked for, one of other sources is no run's any more: a changed copy of
 * the tree may share the folder.
 */
const UNUSED_MS = 3600_000

/** A folder of the sources, or a file, as it stands; wherever the tree is. */
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

/** The folder that `make` fills; it depends on nothing but `sources`. */
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

/** The RSA key of the tests' callers, as PEM: making one takes half a second of a processor. */
export async function callerKey(): Promise<{ privateKey: string; publicKey: string }> {
  const folder = await prepared('caller', ['packages/signer/test/prepared.ts'], async (draft) => {
    const pair = generateKeyPairSync('rsa', {
      modulusLength: 4096,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    for (const [name, pem] of Object.entries(pair))
      writeFileSync(join(draft, name), pem, { mode: 0o600 })
  })
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  return { privateKey: read('privateKey'), publicKey: read('publicKey') }
}

/** A folder's content put into another one; modes and owners stay. */
export function copyOf(folder: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 })
  const { status, stderr } = spawnSync('cp', ['-a', `${folder}/.`, to], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`cannot copy ${folder}: ${stderr}`)
}
