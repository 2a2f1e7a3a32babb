// Addons that were built before: a package that CUSTODY_PREBUILT names, or that is installed, or
// that lies in the checkout's folder prebuilt; and the cache of whoever builds,
// ${XDG_CACHE_HOME:-~/.cache}/custody/prebuilt, which every build with cargo fills.
// CUSTODY_PREBUILT_CACHE=off: the cache is neither read nor written.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hashOf, packageName, platformHere, sha256 } from './native-sources.mjs'
import { doubtOfFolder, readOnce } from './native-trust.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
/** Where `npm run prebuild` puts its package by default. */
export const PREBUILT = join(root, 'prebuilt')
/** Of an addon: those of the newest sources stay. */
const ENTRIES_KEPT = 8
const LEFT_MS = 3_600_000

/**
 * Builds with flags of the caller's are not what others expect to find, and who sets them wants
 * them.
 */
const hasOwnFlags = () =>
  Object.entries(process.env).some(
    ([name, value]) =>
      value &&
      /^(RUSTFLAGS|CARGO_ENCODED_RUSTFLAGS|RUSTC|RUSTC_WRAPPER|CARGO_BUILD_(?!JOBS).*|CARGO_PROFILE_.*|CARGO_TARGET_(?!DIR$).*)$/.test(
        name,
      ),
  )

/** null: there is none. As freedesktop.org has it, a relative XDG_CACHE_HOME is ignored. */
function cacheFolder() {
  if (process.env.CUSTODY_PREBUILT_CACHE === 'off' || hasOwnFlags() || process.getuid === undefined)
    return null
  const { XDG_CACHE_HOME: named = '' } = process.env
  const home = homedir()
  if (isAbsolute(named)) return join(named, 'custody', 'prebuilt')
  return isAbsolute(home) && home !== '/' ? join(home, '.cache', 'custody', 'prebuilt') : null
}

const shortName = () => packageName(platformHere()).split('/')[1]
const entryOf = (addon) => `${addon.name}-${hashOf(addon.native)}-${shortName()}`

/**
 * Where a prebuilt addon may be, in order. `top`: up to where folders must be this user's; null: it
 * was put there as code is.
 */
function candidates(addon) {
  const named = process.env.CUSTODY_PREBUILT
  const within = (folder) => join(folder, shortName())
  // The package itself, or the folder in which `npm run prebuild` made it. A name that leads
  // nowhere is told, and nothing else taken.
  if (named)
    return [
      {
        folder: existsSync(join(within(named), 'package.json')) ? within(named) : named,
        top: null,
      },
    ]
  const cache = cacheFolder()
  return [
    { folder: join(root, 'node_modules', packageName(platformHere())), top: null },
    // Above it, the checkout is code itself.
    { folder: within(PREBUILT), top: PREBUILT },
    ...(cache === null ? [] : [{ folder: join(cache, entryOf(addon)), top: '/' }]),
  ].filter(({ folder }) => existsSync(folder))
}

/**
 * @returns its bytes where it is what these sources make, and nobody else could write it; else
 *   the reason why not
 */
function examine(addon, { folder, top }) {
  const isAsked = top !== null
  const [file, manifest] = [join(folder, `${addon.name}.node`), join(folder, 'package.json')]
  const none = `${folder} holds no prebuilt ${addon.name} addon (make one: npm run prebuild)`
  const foldersDoubt = isAsked && existsSync(folder) ? doubtOfFolder(folder, top) : null
  if (foldersDoubt !== null) return { reason: foldersDoubt }
  if (!existsSync(manifest) || !existsSync(file)) return { reason: none }
  const [told, made] = [readOnce(manifest, isAsked), readOnce(file, isAsked)]
  if (told.doubt !== null || made.doubt !== null) return { reason: told.doubt ?? made.doubt }
  let description
  try {
    description = JSON.parse(told.bytes.toString('utf8'))
  } catch {
    return { reason: `${manifest} is not JSON` }
  }
  const name = packageName(platformHere())
  if (description?.name !== name)
    return { reason: `${folder} is ${description?.name}, and this platform needs ${name}` }
  const { sources, sha256: whole } = description.custody?.[addon.name] ?? {}
  const own = hashOf(addon.native)
  if (sources !== own) {
    return {
      reason:
        `the prebuilt ${addon.name} addon of ${folder} was built from other Rust sources than this checkout's ` +
        `(${String(sources).slice(0, 12)}, not ${own.slice(0, 12)})`,
    }
  }
  if (whole !== sha256(made.bytes))
    return {
      reason: `${file} is not the file that its package.json describes: it is damaged or was exchanged`,
    }
  return { bytes: made.bytes }
}

/**
 * Whether this host can load an addon: one of a newer C library, as a home that hosts share may
 * hold, cannot be.
 * @param file the addon, in place
 */
export function isLoaded(file) {
  const { status } = spawnSync(process.execPath, ['-e', 'require(process.argv[1])', file], {
    stdio: 'ignore',
  })
  return status === 0
}

/** The first that can be used, as folder and bytes; null: none. Says of each other why not. */
export function findPrebuilt(addon) {
  for (const candidate of candidates(addon)) {
    let examined
    try {
      examined = examine(addon, candidate)
    } catch (error) {
      // A link where a file should be, or a file that is gone meanwhile.
      examined = { reason: `${candidate.folder} cannot be read: ${error.message}` }
    }
    if (examined.bytes) return { folder: candidate.folder, bytes: examined.bytes }
    console.error(`${examined.reason}: it is not used`)
  }
  return null
}

/** Describes prebuilt addons, in the words of a package.json. */
export const describe = (addons) => ({
  name: packageName(platformHere()),
  custody: Object.fromEntries(
    addons.map(({ addon, bytes }) => [
      addon.name,
      { sources: hashOf(addon.native), sha256: sha256(bytes) },
    ]),
  ),
})

/** Puts what was built into the cache. Never a reason to fail: the addon is in place. */
export function keep(addon, sources, bytes) {
  const cache = cacheFolder()
  if (cache === null) return
  let partial = null
  try {
    // Sources that were edited while cargo ran are not what it built.
    if (hashOf(addon.native) !== sources) return
    mkdirSync(cache, { recursive: true, mode: 0o700 })
    const doubt = doubtOfFolder(cache)
    if (doubt !== null)
      return console.error(`${doubt}: the ${addon.name} addon is not kept in ${cache}`)
    partial = mkdtempSync(join(cache, '.partial-'))
    writeFileSync(join(partial, `${addon.name}.node`), bytes, { mode: 0o600 })
    writeFileSync(
      join(partial, 'package.json'),
      `${JSON.stringify(describe([{ addon, bytes }]), null, 2)}\n`,
      { mode: 0o600 },
    )
    chmodSync(partial, 0o700)
    const entry = join(cache, entryOf(addon))
    rmSync(entry, { recursive: true, force: true })
    renameSync(partial, entry)
    partial = null
    prune(cache, addon)
  } catch (error) {
    console.error(`the ${addon.name} addon is not kept in ${cache}: ${error.message}`)
  } finally {
    if (partial !== null) rmSync(partial, { recursive: true, force: true })
  }
}

function prune(cache, addon) {
  // Of processes that were killed.
  const isLeft = (name) =>
    name.startsWith('.partial-') && Date.now() - statSync(join(cache, name)).mtimeMs > LEFT_MS
  for (const name of readdirSync(cache).filter(isLeft))
    rmSync(join(cache, name), { recursive: true, force: true })
  const isItsOwn = (name) => name.startsWith(`${addon.name}-`) && name.endsWith(`-${shortName()}`)
  const newestFirst = readdirSync(cache)
    .filter(isItsOwn)
    .map((name) => ({ path: join(cache, name), at: statSync(join(cache, name)).mtimeMs }))
    .sort((a, b) => b.at - a.at)
  for (const { path } of newestFirst.slice(ENTRIES_KEPT))
    rmSync(path, { recursive: true, force: true })
}
