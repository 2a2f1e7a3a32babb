// Builds this checkout on first use, because install scripts are disabled (.npmrc). Each command that
// needs the build calls `ensureBuilt` first. For a built checkout that takes some milliseconds: it
// compares the sizes and modification times of all inputs with those of the last build.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pinnedNode, root } from './pinned-node.mjs'

const SITES = ['approver', 'checkout', 'console', 'reference']
const NATIVE = ['packages/threshold/native', 'packages/key-encryption/native']
/** Folders with inputs: all files below them. */
const FOLDERS = [
  ...NATIVE.map((native) => `${native}/src`),
  ...[...SITES, 'site'].flatMap((site) => [`packages/${site}/src`, `packages/${site}/scripts`]),
]
/** Single inputs. npm rewrites its list of installed packages at each installation. */
const FILES = [
  'node_modules/.package-lock.json',
  ...NATIVE.flatMap((native) =>
    ['Cargo.toml', 'Cargo.lock', 'build.rs'].map((file) => `${native}/${file}`),
  ),
  ...[...SITES, 'site'].flatMap((site) => [
    `packages/${site}/package.json`,
    `packages/${site}/index.html`,
  ]),
  ...['build', 'build-native', 'build-sites', 'link-postgres', 'trim-install'].map(
    (script) => `scripts/${script}.mjs`,
  ),
]
const OUTPUTS = [
  'packages/threshold/native/threshold.node',
  'packages/key-encryption/native/pkcs11.node',
  ...SITES.map((site) => `packages/${site}/dist/.inputs`),
]
/** File with the hash of the inputs of the last build. */
export const STAMP = join(root, 'dist', '.built')

const describe = (path) => {
  const stat = statSync(join(root, path), { throwIfNoEntry: false })
  return stat?.isDirectory() ? '' : `${path} ${stat?.size} ${stat?.mtimeMs}\n`
}

/** Returns a hash of the paths, sizes and modification times of all inputs. */
export function inputsHash() {
  const hash = createHash('sha256')
  for (const folder of FOLDERS.filter((each) => existsSync(join(root, each)))) {
    for (const file of readdirSync(join(root, folder), { recursive: true }).sort())
      hash.update(describe(join(folder, file)))
  }
  for (const file of FILES) hash.update(describe(file))
  return hash.digest('hex')
}

/** Returns whether all outputs exist and were built from the present inputs. */
export const isBuilt = () =>
  existsSync(STAMP) &&
  OUTPUTS.every((path) => existsSync(join(root, path))) &&
  readFileSync(STAMP, 'utf8') === inputsHash()

/**
 * Runs scripts/build.mjs if something is missing or outdated; exits if that fails. The progress is
 * printed on standard error, because callers read the standard output of some commands.
 */
export function ensureBuilt() {
  if (isBuilt()) return
  const { status, error } = spawnSync(
    pinnedNode() ?? process.execPath,
    [join(root, 'scripts', 'build.mjs')],
    { cwd: root, stdio: ['ignore', 2, 2] },
  )
  if (error) console.error(`The checkout cannot be built: ${error.message}`)
  if (status !== 0) process.exit(1)
}
