// npm run engine                 the Rust tests of packages/threshold/native: what no caller of the built addon can do
// npm run engine -- NAME…        those whose path contains one of the names
//
// Target folder and profile are those of build-native.mjs, so that only the addon itself is compiled again. Skipped where there is
// no cargo: an addon that was taken prebuilt needs none.
import { spawnSync } from 'node:child_process'
import { ADDONS, findCargo, TARGET } from './native-sources.mjs'

const { native } = ADDONS.find(({ name }) => name === 'threshold')
const cargo = findCargo()
if (!cargo) {
  console.log('skipped: cargo is not installed, so the Rust tests of the engine cannot be compiled (https://rustup.rs)')
  process.exit(0)
}
const args = ['test', '--release', '--locked', '--target-dir', TARGET, '--', ...process.argv.slice(2)]
const { status, error } = spawnSync(cargo, args, { cwd: native, stdio: 'inherit' })
if (error) console.error(`cargo test did not start: ${error.message}`)
process.exit(status ?? 1)
