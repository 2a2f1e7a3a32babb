// Checks everything that is shipped for known vulnerabilities: npm packages with the registry's
// database, and Rust crates with `cargo audit` (cargo install cargo-audit --locked), whose database
// is a public repository. A database that cannot be reached is reported as not checked, which is
// not a failure; a missing cargo-audit is one.
//   npm run release-check -- --only advisories
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
  if (!hasAudit) {
    parts.push(`${name} crates: not checked; install cargo-audit (cargo install cargo-audit)`)
    isFailed = true
  } else
    report(
      `${name} crates`,
      run(cargo, ['audit', '--file', join(native, 'Cargo.lock')], root),
      (text) => /couldn't fetch advisory database/.test(text),
    )
}
console.log(parts.join('; '))
process.exit(isFailed ? 1 : 0)
