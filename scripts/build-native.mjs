// Builds the Rust addons of packages/threshold and packages/key-encryption and puts them where their TypeScript faces look.
// Runs after `npm install`, under any Node from 20 on. Nothing is compiled when nothing changed:
// an addon newer than every source file of its own is left alone, so an image that carries built
// addons needs no Rust. Linux and macOS; the addons check Unix file modes.
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const packages = join(dirname(fileURLToPath(import.meta.url)), '..', 'packages')
// One folder for both: what they have in common is compiled once.
const target = join(packages, 'threshold', 'native', 'target')
const ADDONS = [
  { name: 'threshold', native: join(packages, 'threshold', 'native') },
  { name: 'pkcs11', native: join(packages, 'key-encryption', 'native') },
]
const fileOf = ({ name, native }) => join(native, `${name}.node`)

function sources(native) {
  const src = join(native, 'src')
  return [
    ...['Cargo.toml', 'Cargo.lock', 'build.rs'].map((name) => join(native, name)),
    ...readdirSync(src).map((name) => join(src, name)),
  ]
}

function isCurrent(addon) {
  const file = fileOf(addon)
  if (!existsSync(file)) return false
  const built = statSync(file).mtimeMs
  return sources(addon.native).every((source) => statSync(source).mtimeMs <= built)
}

function findCargo() {
  const candidates = ['cargo', join(process.env.CARGO_HOME ?? join(homedir(), '.cargo'), 'bin', 'cargo')]
  return candidates.find((cargo) => spawnSync(cargo, ['--version'], { stdio: 'ignore' }).status === 0)
}

function fail(text) {
  console.error(`\n${text}\n`)
  process.exit(1)
}

function build(addon) {
  const { name, native } = addon
  const cargo = findCargo()
  if (!cargo) {
    fail(
      'The signing engines are written in Rust, and cargo was not found.\n' +
        'Install it with rustup (https://rustup.rs):\n' +
        "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh\n" +
        'then run: npm run postinstall',
    )
  }
  const started = Date.now()
  // The sources' time before the build, so that an edit made while cargo runs is not missed.
  const result = spawnSync(cargo, ['build', '--release', '--locked', '--target-dir', target], {
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
  const library = join(target, 'release', `libcustody_${name}.${suffix}`)
  // A rename, never a write in place: a running signer has the old file mapped.
  const fresh = `${fileOf(addon)}.${process.pid}`
  try {
    copyFileSync(library, fresh)
    utimesSync(fresh, new Date(started), new Date(started))
    renameSync(fresh, fileOf(addon))
  } finally {
    rmSync(fresh, { force: true })
  }
  console.log(`${name} addon built in ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

for (const addon of ADDONS) {
  if (isCurrent(addon)) console.log(`${addon.name} addon is up to date`)
  else build(addon)
}
