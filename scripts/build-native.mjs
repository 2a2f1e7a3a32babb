// Builds the Rust addons of packages/threshold and packages/key-encryption, or uses prebuilt ones.
//   node scripts/build-native.mjs                  builds, or uses a prebuilt addon
//   node scripts/build-native.mjs --from-source    builds with cargo, even if a prebuilt one exists
//
// A step of `npm run compile` (scripts/build.mjs), on Linux and macOS, because the addons check Unix
// file modes. An addon that was built from the present sources, or is newer than all of them, is left
// unchanged, so an image with built addons needs no Rust. A prebuilt one
// (scripts/native-prebuilt.mjs) is used only if it was built from exactly these sources. cargo's build
// folder, 240 MB, is removed unless CUSTODY_KEEP_BUILD is 1, which makes later builds faster.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { findPrebuilt, isLoaded, keep } from './native-prebuilt.mjs'
import { ADDONS, findCargo, hashOf, sources, TARGET } from './native-sources.mjs'

/** File beside an addon with the hash of the sources from which it was built. */
const hashFile = (addon) => `${addon.file}.sources`

function isCurrent(addon) {
  if (!existsSync(addon.file)) return false
  if (existsSync(hashFile(addon)))
    return readFileSync(hashFile(addon), 'utf8') === hashOf(addon.native)
  // An addon that was copied here, as into an image.
  const built = statSync(addon.file).mtimeMs
  return sources(addon.native).every((source) => statSync(source).mtimeMs <= built)
}

function fail(text) {
  console.error(`\n${text}\n`)
  process.exit(1)
}

/**
 * Installs an addon by a rename and never by writing in place, because a running signer has mapped
 * the old file. Every user of the machine may load it, whatever the umask is.
 * @param made hash of its sources
 */
function place(addon, bytes, made) {
  const fresh = `${addon.file}.${process.pid}`
  try {
    writeFileSync(fresh, bytes)
    chmodSync(fresh, 0o755)
    rmSync(hashFile(addon), { force: true })
    renameSync(fresh, addon.file)
    writeFileSync(hashFile(addon), made)
  } finally {
    rmSync(fresh, { force: true })
  }
}

/**
 * Installs a prebuilt addon.
 * @returns whether one was installed
 */
function takePrebuilt(addon) {
  const prebuilt = findPrebuilt(addon)
  if (prebuilt === null) return false
  place(addon, prebuilt.bytes, hashOf(addon.native))
  if (!isLoaded(addon.file)) {
    for (const file of [addon.file, hashFile(addon)]) rmSync(file, { force: true })
    console.error(
      `the ${addon.name} addon of ${prebuilt.folder} cannot be loaded on this host: it is not used`,
    )
    return false
  }
  console.log(`${addon.name} addon taken prebuilt from ${prebuilt.folder}`)
  return true
}

function build(addon) {
  const { name, native } = addon
  const cargo = findCargo()
  if (!cargo) {
    fail(
      'The signing engines are written in Rust, and cargo was not found.\n' +
        'Install it with rustup (https://rustup.rs):\n' +
        "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh\n" +
        'then run: npm run compile. Or build them on another host (npm run prebuild) and put its folder prebuilt here.',
    )
  }
  const started = Date.now()
  // Read before the build, so that an edit during the build is detected.
  const made = hashOf(native)
  const result = spawnSync(cargo, ['build', '--release', '--locked', '--target-dir', TARGET], {
    cwd: native,
    stdio: 'inherit',
  })
  if (result.status !== 0) {
    fail(
      `cargo build failed (${result.error?.message ?? `exit ${result.status}`}). ` +
        'It needs Rust 1.88 or newer (rustup update stable) and a C linker (build-essential, Xcode tools).',
    )
  }
  const suffix = process.platform === 'darwin' ? 'dylib' : 'so'
  const library = join(TARGET, 'release', `libcustody_${name}.${suffix}`)
  const bytes = readFileSync(library)
  place(addon, bytes, made)
  keep(addon, made, bytes)
  hasBuilt = true
  console.log(`${name} addon built in ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

let hasBuilt = false
const fromSource = process.argv.includes('--from-source')
for (const addon of ADDONS) {
  if (isCurrent(addon) && !fromSource) console.log(`${addon.name} addon is up to date`)
  else if (fromSource || !takePrebuilt(addon)) build(addon)
}
if (hasBuilt && process.env.CUSTODY_KEEP_BUILD !== '1')
  rmSync(TARGET, { recursive: true, force: true })
