// Checks the format of both native packages, and runs the Rust tests of packages/threshold/native,
// which cover what callers of the built addon cannot do.
//   npm run engine                 runs all tests
//   npm run engine -- NAME…        runs those whose path contains one of the names
//
// Target folder and profile are those of build-native.mjs, so that only the addon itself is
// compiled again. Skipped if cargo is missing, because a prebuilt addon does not need it.
import { spawnSync } from 'node:child_process'
import { ADDONS, findCargo, TARGET } from './native-sources.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
const { native } = ADDONS.find(({ name }) => name === 'threshold')
const cargo = findCargo()
if (!cargo) {
  console.log(
    'skipped: cargo is not installed, so the Rust tests of the engine cannot be compiled (https://rustup.rs)',
  )
  process.exit(0)
}
const words = process.argv.slice(2)
const hasFormatter = spawnSync(cargo, ['fmt', '--version']).status === 0
if (!hasFormatter)
  console.log(
    'the format of the Rust sources is not checked: rustfmt is not installed (rustup component add rustfmt)',
  )
for (const { native: folder } of hasFormatter && words.length === 0 ? ADDONS : []) {
  const { status } = spawnSync(cargo, ['fmt', '--check'], { cwd: folder, stdio: 'inherit' })
  if (status === 0) continue
  console.error(`run: (cd ${folder} && cargo fmt)`)
  process.exit(1)
}
const args = ['test', '--release', '--locked', '--target-dir', TARGET, '--', ...words]
const { status, error } = spawnSync(cargo, args, { cwd: native, stdio: 'inherit' })
if (error) console.error(`cargo test did not start: ${error.message}`)
process.exit(status ?? 1)
