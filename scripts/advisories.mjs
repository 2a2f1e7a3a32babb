// npm run release-check -- --only advisories
//
// Known vulnerabilities of what is shipped: of the npm packages by the registry's own database, and
// of the Rust crates by `cargo audit` (cargo install cargo-audit --locked), whose database is a
// public repository. Each says itself where it cannot be asked: that part is then reported as not
// checked, and is no failure.
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ADDONS, findCargo } from './native-sources.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const parts = []
let isFailed = false

function report(name, { status, stdout, stderr }, isUnasked) {
  console.log(`${stdout}${stderr}`.trim())
  const outcome =
    status === 0
      ? 'no advisory'
      : isUnasked(`${stdout}${stderr}`)
        ? 'not checked'
        : 'advisories found'
  isFailed ||= outcome === 'advisories found'
  parts.push(`${name}: ${outcome}`)
}

const run = (command, args, cwd) => {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  return { status, stdout: stdout ?? '', stderr: stderr ?? error?.message ?? '' }
}

report(
  'npm',
  run('npm', ['audit', '--omit=dev'], root),
  (text) => !/vulnerabilit(y|ies)/.test(text) || /audit endpoint returned an error/.test(text),
)
const cargo = findCargo()
const hasAudit = cargo !== undefined && run(cargo, ['audit', '--version'], root).status === 0
for (const { name, native } of ADDONS) {
  if (!hasAudit) parts.push(`${name} crates: not checked, cargo-audit is not installed`)
  else
    report(
      `${name} crates`,
      run(cargo, ['audit', '--file', join(native, 'Cargo.lock')], root),
      (text) => /couldn't fetch advisory database/.test(text),
    )
}
console.log(parts.join('; '))
process.exit(isFailed ? 1 : 0)
