import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { find, json, read, root } from '../testing/tree.ts'

// Tests of `npm run release` in a repository with the scripts and manifests of this one.

const CHANGELOG = `# Changelog

## [0.2.0] - Unreleased

### Added

- A feature.

## [0.1.0] - 2026-01-31

### Added

- The first version.
`

const script = (name: string) =>
  import(pathToFileURL(join(root, `scripts/release/${name}.mjs`)).href)

function repository(t: TestContext, changelog = CHANGELOG) {
  const folder = mkdtempSync(join(tmpdir(), 'custody-release-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const path of [
    ...find(['scripts/{release,pinned-node,script-help}.mjs', 'scripts/release/*.mjs']),
    ...find(['package.json', 'packages/*/package.json', 'package-lock.json', '.gitignore']),
  ]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    cpSync(join(root, path), join(folder, path))
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
  const git = (...words: string[]) => {
    // A developer's global setting to sign would ask for a key.
    const settings = [
      'user.name=t',
      'user.email=t@example.org',
      'commit.gpgsign=false',
      'tag.gpgsign=false',
    ].flatMap((setting) => ['-c', setting])
    const { status, stdout, stderr } = spawnSync('git', [...settings, ...words], {
      cwd: folder,
      encoding: 'utf8',
    })
    assert.equal(status, 0, stderr)
    return stdout.trim()
  }
  git('init', '-q')
  git('add', '-A', '.')
  git('rm', '-q', '--cached', '--ignore-unmatch', 'node_modules')
  writeFileSync(join(folder, '.git/info/exclude'), 'node_modules\n')
  git('commit', '-qm', 'test: begin')
  const release = (...words: string[]) => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(folder, 'scripts/release.mjs'), ...words],
      { cwd: folder, encoding: 'utf8' },
    )
    return { status, output: stdout + stderr }
  }
  return { folder, git, release }
}

test('all packages have one version, a licence, a description and the repository', () => {
  const { version, license, repository } = json<Record<string, unknown>>('package.json')
  for (const path of find('packages/*/package.json')) {
    const manifest = json<Record<string, unknown>>(path)
    assert.equal(manifest['version'], version, path)
    assert.equal(manifest['license'], license, path)
    assert.ok(manifest['description'], path)
    assert.deepEqual(
      manifest['repository'],
      { ...(repository as object), directory: dirname(path) },
      path,
    )
  }
})

test('a dry run prints its steps and changes nothing', (t) => {
  const { git, release } = repository(t)
  const { status, output } = release('0.2.0', '--date', '2026-02-28')
  assert.equal(status, 0, output)
  assert.match(output, /^Release 0\.2\.0 of 2026-02-28, with 1 entries/m)
  assert.match(output, /^Nothing was changed/m)
  assert.equal(git('status', '--porcelain'), '')
})

test('rejects wrong arguments and prints the usage', (t) => {
  const { release } = repository(t)
  for (const [words, message] of [
    [[], /version: must be X\.Y\.Z/],
    [['v0.2.0'], /version: must be X\.Y\.Z/],
    [['0.2'], /version: must be X\.Y\.Z/],
    [['0.2.0', '0.3.0'], /version: must be X\.Y\.Z/],
    [['0.2.0', '--date', '2026-02-31x'], /--date: must be a day/],
    [['0.2.0', '--write'], /--checked: is required/],
    [['0.2.0', '--publish'], /--publish/],
  ] as const) {
    const { status, output } = release(...words)
    assert.equal(status, 2, output)
    assert.match(output, message)
    assert.match(output, /Usage: npm run release/)
  }
})

test('reports all problems that prevent the release', (t) => {
  const { folder, git, release } = repository(t)
  git('tag', 'v0.2.0')
  writeFileSync(join(folder, 'stray'), '')
  const client = join(folder, 'packages/client/package.json')
  writeFileSync(client, readFileSync(client, 'utf8').replace('"version": "', '"version": "9'))
  const { status, output } = release('0.2.0')
  assert.equal(status, 1, output)
  assert.match(output, /packages\/client\/package\.json: version 9/)
  assert.match(output, /the working tree has changes/)
  assert.match(output, /the tag v0\.2\.0 exists/)
})

test('rejects a version that is lower, was released before, or has no changelog entry', (t) => {
  const { release } = repository(t)
  assert.match(release('0.0.9').output, /version: 0\.0\.9 is lower/)
  assert.match(release('0.1.0').output, /version 0\.1\.0 was released before/)
  assert.match(release('0.3.0').output, /unreleased section is of version 0\.2\.0, not 0\.3\.0/)
  const empty = repository(
    t,
    '# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-31\n\n- One.\n',
  )
  assert.match(empty.release('0.2.0').output, /the unreleased section has no entry/)
})

test('requires a complete and successful release check of the same commit', (t) => {
  const { folder, git, release } = repository(t)
  const commit = git('rev-parse', 'HEAD')
  const file = join(folder, '.git/release-check.json')
  for (const [result, message] of [
    [{ commit: 'f'.repeat(40), parts: [], missing: [] }, /is of commit f+, but/],
    [{ commit, parts: [{ name: 'tests', status: 1 }], missing: [] }, /failed: tests/],
    [{ commit, parts: [], missing: ['chaos'] }, /was not run: chaos/],
  ] as const) {
    writeFileSync(file, JSON.stringify(result))
    const { status, output } = release('0.2.0', '--checked', file)
    assert.equal(status, 1, output)
    assert.match(output, message)
  }
  writeFileSync(
    file,
    JSON.stringify({ commit, parts: [{ name: 'tests', status: 0 }], missing: [] }),
  )
  assert.equal(release('0.2.0', '--checked', file).status, 0)
})

test('writes the version to every file and dates the changelog section', async () => {
  const { releaseSection } = await script('changelog')
  assert.deepEqual(releaseSection(CHANGELOG, '0.2.0', '2026-02-28'), {
    text: CHANGELOG.replace('Unreleased', '2026-02-28'),
    notes: '### Added\n\n- A feature.',
  })
  const { compareVersions, currentVersion, writeVersion } = await script('versions')
  assert.ok(compareVersions('0.10.0', '0.9.9') > 0)
  const folder = mkdtempSync(join(tmpdir(), 'custody-versions-'))
  try {
    for (const path of find(['package.json', 'packages/*/package.json', 'package-lock.json'])) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      cpSync(join(root, path), join(folder, path))
    }
    const before = currentVersion(folder)
    writeVersion(folder, '7.8.9')
    assert.equal(currentVersion(folder), '7.8.9')
    const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8')
    assert.ok(!new RegExp(`"@custody/[a-z-]+": "${before}"`).test(lock))
    writeVersion(folder, before)
    for (const path of ['package.json', 'packages/client/package.json', 'package-lock.json'])
      assert.equal(readFileSync(join(folder, path), 'utf8'), read(path), path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('lists crates with their hashes, without the project’s own', async () => {
  const { cratesOf } = await script('sbom')
  const crates = cratesOf(read('packages/threshold/native/Cargo.lock'))
  assert.ok(crates.length > 20)
  for (const { purl, hashes } of crates) {
    assert.match(purl, /^pkg:cargo\/[\w-]+@\d/)
    assert.match(hashes[0]?.content ?? '', /^[0-9a-f]{64}$/)
  }
  assert.ok(!crates.some(({ name }: { name: string }) => name.includes('custody')))
})
