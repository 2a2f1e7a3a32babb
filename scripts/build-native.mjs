// Builds the Rust addon of packages/threshold and puts it where its TypeScript face looks for it.
// Runs after `npm install`, under any Node from 20 on. Nothing is compiled when nothing changed:
// a threshold.node newer than every source file is left alone, so an image that carries a built
// addon needs no Rust. Linux and macOS; the addon checks Unix file modes.
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const native = join(dirname(fileURLToPath(import.meta.url)), '..', 'packages', 'threshold', 'native')
const addon = join(native, 'threshold.node')

function sources() {
  const src = join(native, 'src')
  return [
    ...['Cargo.toml', 'Cargo.lock', 'build.rs'].map((name) => join(native, name)),
    ...readdirSync(src).map((name) => join(src, name)),
  ]
}

function isCurrent() {
  if (!existsSync(addon)) return false
  const built = statSync(addon).mtimeMs
  return sources().every((file) => statSync(file).mtimeMs <= built)
}

function findCargo() {
  const candidates = ['cargo', join(process.env.CARGO_HOME ?? join(homedir(), '.cargo'), 'bin', 'cargo')]
  return candidates.find((cargo) => spawnSync(cargo, ['--version'], { stdio: 'ignore' }).status === 0)
}

function fail(text) {
  console.error(`\n${text}\n`)
  process.exit(1)
}

function build() {
  const cargo = findCargo()
  if (!cargo) {
    fail(
      'The signing engines are written in Rust, and cargo was not found.\n' +
        'Install it with rustup (https://rustup.rs):\n' +
        "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh\n" +
        'then run: npm run postinstall',
    )
  }
  const target = join(native, 'target')
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
  const library = join(target, 'release', `libcustody_threshold.${suffix}`)
  // A rename, never a write in place: a running signer has the old file mapped.
  const fresh = `${addon}.${process.pid}`
  try {
    copyFileSync(library, fresh)
    utimesSync(fresh, new Date(started), new Date(started))
    renameSync(fresh, addon)
  } finally {
    rmSync(fresh, { force: true })
  }
  console.log(`threshold addon built in ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

if (isCurrent()) console.log('threshold addon is up to date')
else build()
