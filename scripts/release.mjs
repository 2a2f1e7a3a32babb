// Prepares a release. It commits, tags, pushes and publishes nothing, but prints these commands
// (docs/releasing.md).
//   npm run release -- X.Y.Z             checks the requirements and prints what it would write
//   npm run release -- X.Y.Z --write     writes the version and the changelog section, and builds
//                                        the artifacts into --out
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'
import { releaseSection } from './release/changelog.mjs'
import { sbomOf } from './release/sbom.mjs'
import { compareVersions, currentVersion, isVersion, writeVersion } from './release/versions.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))

const USAGE = `Usage: npm run release -- X.Y.Z [--write] [--out FOLDER] [--checked FILE] [--date YYYY-MM-DD]
  --write     write the version and the changelog section, and build the artifacts; without it, only check
  --out       new folder for the artifacts (default: release-X.Y.Z in the folder for temporary files)
  --checked   release-check.json, which npm run release-check wrote for this commit; required with --write
  --date      day of the release (default: today in UTC)`

function fail(message, status = 1) {
  console.error(message)
  process.exit(status)
}

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        write: { type: 'boolean', default: false },
        out: { type: 'string' },
        checked: { type: 'string' },
        date: { type: 'string', default: new Date().toISOString().slice(0, 10) },
      },
    })
    const [version = ''] = positionals
    if (positionals.length !== 1 || !isVersion(version))
      throw new Error(`version: must be X.Y.Z, not ${JSON.stringify(positionals.join(' '))}`)
    if (!/^\d{4}-\d{2}-\d{2}$/.test(values.date) || Number.isNaN(Date.parse(values.date)))
      throw new Error(`--date: must be a day as YYYY-MM-DD, not ${JSON.stringify(values.date)}`)
    if (values.write && values.checked === undefined)
      throw new Error('--checked: is required with --write')
    const out = resolve(values.out ?? join(tmpdir(), `release-${version}`))
    if (values.write && existsSync(out)) throw new Error(`--out: ${out} exists`)
    return { ...values, version, out }
  } catch (error) {
    return fail(`${error.message}\n${USAGE}`, 2)
  }
}

/**
 * Runs a program in the repository.
 * @returns its standard output
 * @throws Error with its output
 */
function run(program, words, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, words, {
    cwd: root,
    encoding: 'utf8',
    ...options,
  })
  if (status !== 0)
    throw new Error(`${[program, ...words].join(' ')}: ${error?.message ?? (stderr || stdout)}`)
  return stdout.trim()
}

/**
 * Checks the release check's result.
 * @throws Error if it was of another commit or incomplete, or a part has failed
 */
function assertChecked(file, commit) {
  const { commit: checked, parts, missing } = JSON.parse(readFileSync(file, 'utf8'))
  if (checked !== commit)
    throw new Error(`${file}: is of commit ${checked}, but the release is of ${commit}`)
  const failed = parts.filter(({ status }) => status !== 0).map(({ name }) => name)
  if (failed.length > 0) throw new Error(`${file}: failed: ${failed.join(', ')}`)
  if (missing.length > 0) throw new Error(`${file}: was not run: ${missing.join(', ')}`)
}

/**
 * Runs each check.
 * @returns the messages of those that failed
 */
function problemsOf(checks) {
  return checks.flatMap((check) => {
    try {
      check()
      return []
    } catch (error) {
      return [error.message]
    }
  })
}

/** Builds every artifact into a folder, with the version in its name. */
function build({ version, out }, notes) {
  mkdirSync(out, { recursive: true })
  const work = mkdtempSync(join(out, '.work-'))
  try {
    // The commit's time is used, so that the same commit results in the same archives.
    const time = run('git', ['show', '-s', '--format=%cI', 'HEAD'])
    for (const kind of ['platform', 'signer']) {
      const name = `custody-${kind}-${version}`
      console.log(`building ${name}`)
      run(process.execPath, ['scripts/bundle.mjs', '--for', kind, '--out', join(work, name)])
      const flags = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', `--mtime=${time}`]
      run('tar', [...flags, '-czf', join(out, `${name}.tar.gz`), '-C', work, name])
    }
    console.log('building @custody/client')
    run(process.execPath, ['scripts/pack-client.mjs', join(work, 'client')])
    run('npm', ['pack', '--silent', '--pack-destination', out], { cwd: join(work, 'client') })
    console.log('writing the software bill of materials')
    const sbom = `${JSON.stringify(sbomOf(root), null, 2)}\n`
    writeFileSync(join(out, `custody-${version}.cdx.json`), sbom)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  writeFileSync(join(out, 'NOTES.md'), `${notes}\n`)
  const sums = readdirSync(out)
    .toSorted()
    .map((name) => {
      const hash = createHash('sha256')
        .update(readFileSync(join(out, name)))
        .digest('hex')
      return `${hash}  ${name}\n`
    })
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''))
}

const release = readArguments()
const { version, date, out } = release
const changelogPath = join(root, 'CHANGELOG.md')
let section
const problems = problemsOf([
  () => {
    const current = currentVersion(root)
    if (compareVersions(version, current) < 0)
      throw new Error(`version: ${version} is lower than the current ${current}`)
  },
  () => {
    section = releaseSection(readFileSync(changelogPath, 'utf8'), version, date)
  },
  () => {
    const changes = run('git', ['status', '--porcelain'])
    if (changes !== '') throw new Error(`git: the working tree has changes:\n${changes}`)
  },
  () => {
    if (run('git', ['tag', '--list', `v${version}`]) !== '')
      throw new Error(`git: the tag v${version} exists`)
  },
  () => {
    if (release.checked !== undefined)
      assertChecked(release.checked, run('git', ['rev-parse', 'HEAD']))
  },
])
if (problems.length > 0) fail(problems.map((problem) => `✖ ${problem}`).join('\n'))

const entries = section.notes.split('\n').filter((line) => line.startsWith('- ')).length
console.log(`Release ${version} of ${date}, with ${entries} entries in CHANGELOG.md`)
if (release.write) {
  writeFileSync(changelogPath, section.text)
  const changed = ['CHANGELOG.md', ...writeVersion(root, version)]
  console.log(`written: ${changed.join(', ')}`)
  build(release, section.notes)
  console.log(`artifacts: ${out}: ${readdirSync(out).toSorted().join(', ')}`)
} else {
  console.log(`would write: the version in every package.json, and CHANGELOG.md
would build into ${out}: bundles for platform and signer, @custody/client, SBOM, SHA256SUMS, NOTES.md
Nothing was changed. Add --write --checked FILE to release.`)
}
console.log(`Then:
  git commit -am "release: publish ${version}"
  git tag -s v${version} -F ${join(out, 'NOTES.md')}
  git push --follow-tags`)
