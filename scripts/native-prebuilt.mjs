// Finds addons that were built before: in the package that CUSTODY_PREBUILT names, in an installed
// package, in the checkout's folder prebuilt, and in the cache of the current user,
// ${XDG_CACHE_HOME:-~/.cache}/custody/prebuilt, which every build with cargo fills. With
// CUSTODY_PREBUILT_CACHE=off the cache is neither read nor written.
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
/** Default folder of the package that `npm run prebuild` creates. */
export const PREBUILT = join(root, 'prebuilt')
/** Number of cache entries of an addon that are kept: those of the newest sources. */
const ENTRIES_KEPT = 8
const LEFT_MS = 3_600_000

/**
 * Returns whether the caller has set build flags. Such builds are not shared, and the caller
 * expects their own build.
 */
const hasOwnFlags = () =>
  Object.entries(process.env).some(
    ([name, value]) =>
      value &&
      /^(RUSTFLAGS|CARGO_ENCODED_RUSTFLAGS|RUSTC|RUSTC_WRAPPER|CARGO_BUILD_(?!JOBS).*|CARGO_PROFILE_.*|CARGO_TARGET_(?!DIR$).*)$/.test(
        name,
      ),
  )

/**
 * Returns the cache folder; null if there is none. A relative XDG_CACHE_HOME is ignored, as
 * freedesktop.org specifies.
 */
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
 * Returns the folders where a prebuilt addon may be, in order. `top`: folder up to which all must
 * belong to this user; null: the folder was installed like code and is trusted.
 */
function candidates(addon) {
  const named = process.env.CUSTODY_PREBUILT
  const within = (folder) => join(folder, shortName())
  // The package itself, or the folder in which `npm run prebuild` created it. If the named folder
  // does not exist, that is reported and no other one is used.
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
    // Folders above are not checked, because the checkout itself is code.
    { folder: within(PREBUILT), top: PREBUILT },
    ...(cache === null ? [] : [{ folder: join(cache, entryOf(addon)), top: '/' }]),
  ].filter(({ folder }) => existsSync(folder))
}

/**
 * Checks a candidate.
 * @returns its bytes if it was built from these sources and no other user can change it; otherwise
 *   the reason
 */
function examine(addon, { folder, top }) {
  const isAsked = top !== null
  const [file, manifest] = [join(folder, `${addon.name}.node`), join(folder, 'package.json')]
  const none = `${folder} holds no prebuilt ${addon.name} addon (make one: npm run prebuild)`
  const foldersDoubt = isAsked && existsSync(folder) ? doubtOfFolder(folder, top) : null
  if (foldersDoubt !== null) return { reason: foldersDoubt }
  if (!existsSync(manifest) || !existsSync(file)) return { reason: none }
  const [metadata, made] = [readOnce(manifest, isAsked), readOnce(file, isAsked)]
  if (metadata.doubt !== null || made.doubt !== null)
    return { reason: metadata.doubt ?? made.doubt }
  let description
  try {
    description = JSON.parse(metadata.bytes.toString('utf8'))
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
 * Returns whether this host can load an addon. One that requires a newer C library, as in a home
 * folder that hosts share, cannot be loaded.
 * @param file the addon at its final path
 */
export function isLoaded(file) {
  const { status } = spawnSync(process.execPath, ['-e', 'require(process.argv[1])', file], {
    stdio: 'ignore',
  })
  return status === 0
}

/**
 * Returns the first usable addon with its folder and bytes; null if there is none. Prints why each
 * other one is unusable.
 */
export function findPrebuilt(addon) {
  for (const candidate of candidates(addon)) {
    let examined
    try {
      examined = examine(addon, candidate)
    } catch (error) {
      // A link instead of a file, or a file that was removed in the meantime.
      examined = { reason: `${candidate.folder} cannot be read: ${error.message}` }
    }
    if (examined.bytes) return { folder: candidate.folder, bytes: examined.bytes }
    console.error(`${examined.reason}: it is not used`)
  }
  return null
}

/** Describes prebuilt addons as fields of a package.json. */
export const describe = (addons) => ({
  name: packageName(platformHere()),
  custody: Object.fromEntries(
    addons.map(({ addon, bytes }) => [
      addon.name,
      { sources: hashOf(addon.native), sha256: sha256(bytes) },
    ]),
  ),
})

/** Adds a built addon to the cache. Errors are ignored, because the addon is already installed. */
export function keep(addon, sources, bytes) {
  const cache = cacheFolder()
  if (cache === null) return
  let partial = null
  try {
    // Sources that were edited during the build do not match its result.
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
  // Temporary files of killed processes.
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
