// Lists the native addons, their sources, and their target platforms.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const packages = join(dirname(fileURLToPath(import.meta.url)), '..', 'packages')
/**
 * `file`: path from which the TypeScript module loads it. Both share one target folder, so that
 * common dependencies are compiled once.
 */
export const ADDONS = [
  { name: 'threshold', native: join(packages, 'threshold', 'native') },
  { name: 'pkcs11', native: join(packages, 'key-encryption', 'native') },
].map((addon) => ({ ...addon, file: join(addon.native, `${addon.name}.node`) }))
export const TARGET = join(packages, 'threshold', 'native', 'target')

/** Returns the path of cargo; undefined if it is missing. */
export function findCargo() {
  const candidates = [
    'cargo',
    join(process.env.CARGO_HOME ?? join(homedir(), '.cargo'), 'bin', 'cargo'),
  ]
  return candidates.find(
    (cargo) => spawnSync(cargo, ['--version'], { stdio: 'ignore' }).status === 0,
  )
}

export function sources(native) {
  const src = join(native, 'src')
  const files = readdirSync(src, { recursive: true, withFileTypes: true }).filter((each) =>
    each.isFile(),
  )
  return [
    ...['Cargo.toml', 'Cargo.lock', 'build.rs'].map((name) => join(native, name)),
    ...files.map((each) => join(each.parentPath, each.name)).sort(),
  ]
}

/** Returns the SHA-256 of an addon's sources, including file names. */
export function hashOf(native) {
  const hash = createHash('sha256')
  for (const path of sources(native)) {
    const content = readFileSync(path)
    hash.update(`${relative(native, path)}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

export const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')

/** Returns `os`, `cpu`, and on Linux `libc`, with npm's names. */
export function platformHere() {
  if (process.platform !== 'linux') return { os: process.platform, cpu: process.arch, libc: null }
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined
  return { os: 'linux', cpu: process.arch, libc: isGlibc ? 'glibc' : 'musl' }
}

export const packageName = ({ os, cpu, libc }) =>
  `@custody/threshold-${[os, cpu, libc].filter((each) => each !== null).join('-')}`
