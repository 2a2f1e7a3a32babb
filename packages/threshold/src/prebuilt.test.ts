import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

/** Native addons that are built on one host and installed on another one without Rust. */
const root = join(import.meta.dirname, '../../..')
const folder = mkdtempSync(join(tmpdir(), 'custody-prebuilt-'))
const [out, copy, bin, caches] = [
  join(folder, 'out'),
  join(folder, 'checkout'),
  join(folder, 'bin'),
  join(folder, 'caches'),
]
after(() => rmSync(folder, { recursive: true, force: true }))
const hasCargo = [
  'cargo',
  join(process.env['CARGO_HOME'] ?? join(process.env['HOME'] ?? '', '.cargo'), 'bin', 'cargo'),
].some((cargo) => spawnSync(cargo, ['--version']).status === 0)
const skip = hasCargo ? false : 'no cargo: there is nothing to build the package with'

const addon = join(copy, 'packages/threshold/native/threshold.node')
/** Runs a command in the copy, where Rust is not available. */
const there = (words: string[], env: Record<string, string> = {}) =>
  spawnSync(process.execPath, words, {
    cwd: copy,
    encoding: 'utf8',
    env: { PATH: bin, HOME: folder, CARGO_HOME: folder, ...env },
  })
/** Installs under a umask that closes files to other users, as the commands of an operator have it. */
const install = () =>
  there(['--import', 'data:text/javascript,process.umask(0o77)', 'scripts/build-native.mjs'], {
    CUSTODY_PREBUILT: out,
  })
const emptied = () => {
  for (const file of [addon, join(copy, 'packages/key-encryption/native/pkcs11.node')])
    rmSync(file, { force: true })
}

before(() => {
  if (skip) return
  // The build also fills the build user's cache.
  const env = {
    ...process.env,
    XDG_CACHE_HOME: caches,
    CUSTODY_PREBUILT_CACHE: '',
    RUSTFLAGS: undefined,
  }
  const made = spawnSync(process.execPath, ['scripts/prebuild.mjs', '--out', out], {
    cwd: root,
    encoding: 'utf8',
    env,
  })
  assert.equal(made.status, 0, made.stderr)
  const filter = (path: string) => !path.endsWith('.node') && !path.endsWith('/target')
  for (const name of ['scripts', 'packages/threshold', 'packages/key-encryption/native'])
    cpSync(join(root, name), join(copy, name), { recursive: true, filter })
  for (const name of ['package.json', 'tsconfig.json']) cpSync(join(root, name), join(copy, name))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  mkdirSync(bin)
})

test(
  'a checkout without Rust uses the prebuilt addons, and the threshold addon signs',
  { skip },
  () => {
    const taken = install()
    assert.equal(taken.status, 0, taken.stderr)
    assert.match(
      taken.stdout,
      /threshold addon taken prebuilt from .*\npkcs11 addon taken prebuilt from /,
    )
    assert.equal(statSync(addon).mode & 0o777, 0o755, 'every user may load it')
    const signed = there([
      '--input-type=module',
      '--eval',
      `
    import { startSign } from './packages/threshold/src/index.ts'
    import { complete, keygenSessions, openVaults, sessionId } from './packages/threshold/testing/helpers.ts'
    const vaults = await openVaults()
    const keys = await complete(keygenSessions(vaults, 'ed25519'))
    const id = sessionId()
    const sessions = new Map([1, 2].map((party) => [party, startSign({
      vault: vaults.get(party), key: keys.get(party), sessionId: id, participants: [1, 2], path: [], message: new Uint8Array(32) })]))
    const results = await complete(sessions)
    console.log(Buffer.from(results.get(1).signature).length)
  `,
    ])
    assert.deepEqual([signed.status, signed.stdout.trim()], [0, '64'], signed.stderr)
    assert.match(install().stdout, /threshold addon is up to date/)
  },
)

test('refuses and reports a package of other sources, or with a replaced file', { skip }, () => {
  emptied()
  const source = join(copy, 'packages/threshold/native/src/lib.rs')
  appendFileSync(source, '// another line\n')
  const other = install()
  assert.equal(other.status, 1)
  assert.match(
    other.stderr,
    /the prebuilt threshold addon of .* was built from other Rust sources than this checkout's \([0-9a-f]{12}, not [0-9a-f]{12}\): it is not used/,
  )
  assert.match(other.stderr, /cargo was not found/)
  assert.ok(!existsSync(addon))
  cpSync(join(root, 'packages/threshold/native/src/lib.rs'), source)
  const [made] = readdirSync(out)
  appendFileSync(join(out, made as string, 'threshold.node'), 'x')
  const changed = install()
  assert.equal(changed.status, 1)
  assert.match(changed.stderr, /threshold\.node is not the file that its package\.json describes/)
})

/** Installs without a setting that names a package. */
const installPlainly = (env: Record<string, string> = {}) =>
  there(['scripts/build-native.mjs'], { XDG_CACHE_HOME: caches, ...env })
const prebuiltCache = join(caches, 'custody', 'prebuilt')
const entry = (name: string): string =>
  join(
    prebuiltCache,
    readdirSync(prebuiltCache).find((each) => each.startsWith(`${name}-`)) as string,
  )
/** Checks that nothing is installed and that the output states the reason. */
const refused = (env: Record<string, string>, reason: RegExp) => {
  emptied()
  const { status, stderr, stdout } = installPlainly(env)
  assert.equal(status, 1, stdout)
  assert.match(stderr, reason)
  assert.match(stderr, /cargo was not found/)
  assert.ok(!existsSync(addon))
}

test('a checkout uses a cached build of another checkout with the same sources', { skip }, () => {
  emptied()
  const taken = installPlainly()
  assert.equal(taken.status, 0, taken.stderr)
  assert.match(
    taken.stdout,
    /threshold addon taken prebuilt from .*\/caches\/custody\/prebuilt\/.*\npkcs11 addon taken prebuilt from /,
  )
  assert.equal(statSync(prebuiltCache).mode & 0o777, 0o700)
  assert.equal(
    readdirSync(prebuiltCache).length,
    2,
    'an entry for each addon, and nothing half made',
  )
  refused({ CUSTODY_PREBUILT_CACHE: 'off' }, /cargo was not found/)
})

test('never uses a cache that another user can write to', { skip }, () => {
  const [file, place] = [join(entry('threshold'), 'threshold.node'), entry('threshold')]
  for (const path of [
    file,
    join(place, 'package.json'),
    place,
    prebuiltCache,
    join(caches, 'custody'),
    caches,
  ]) {
    const { mode, uid, gid } = statSync(path)
    for (const bits of [0o020, 0o002]) {
      chmodSync(path, (mode & 0o777) | bits)
      refused({}, /custody-prebuilt-.* can be written by others: .* is not used/)
    }
    chmodSync(path, mode & 0o777)
    if (process.getuid?.() !== 0) continue
    chownSync(path, 65_534, gid)
    refused({}, /custody-prebuilt-.* belongs to user 65534: .* is not used/)
    chownSync(path, uid, gid)
  }
  // A link is not accepted either: its target is checked.
  const [real, open] = [join(folder, 'real'), join(folder, 'open')]
  mkdirSync(open)
  chmodSync(open, 0o777)
  renameSync(caches, join(open, 'caches'))
  symlinkSync(join(open, 'caches'), real)
  refused({ XDG_CACHE_HOME: real }, /open can be written by others: .* is not used/)
  renameSync(join(open, 'caches'), caches)
  emptied()
  assert.equal(installPlainly().status, 0, 'as it was, it is used')
})

test('never uses a cache entry that is damaged or of other sources', { skip }, () => {
  const place = entry('threshold')
  const saved = join(folder, 'saved')
  cpSync(place, saved, { recursive: true })
  appendFileSync(join(place, 'threshold.node'), 'x')
  refused({}, /threshold\.node is not the file that its package\.json describes/)
  rmSync(join(place, 'threshold.node'))
  refused({}, /holds no prebuilt threshold addon/)
  rmSync(place, { recursive: true })
  cpSync(saved, place, { recursive: true })
  // Sources without a build have no entry; an entry in their place is detected by its contents.
  const source = join(copy, 'packages/threshold/native/src/lib.rs')
  appendFileSync(source, '// another line\n')
  refused({}, /cargo was not found/)
  const hashed = there([
    '--input-type=module',
    '--eval',
    `
    import { ADDONS, hashOf } from './scripts/native-sources.mjs'
    console.log(hashOf(ADDONS[0].native))`,
  ]).stdout.trim()
  const forged = place.replace(/-[0-9a-f]{64}/, `-${hashed}`)
  assert.notEqual(forged, place)
  cpSync(saved, forged, { recursive: true })
  refused({}, /was built from other Rust sources than this checkout's/)
  cpSync(join(root, 'packages/threshold/native/src/lib.rs'), source)
  rmSync(forged, { recursive: true })
})

test(
  'uses the package in the `prebuilt` folder by default, unless others can write to it',
  { skip },
  () => {
    const env = { CUSTODY_PREBUILT_CACHE: 'off' }
    const lies = join(copy, 'prebuilt')
    // An earlier test has changed the package in `out`.
    const [name] = readdirSync(out) as [string]
    cpSync(join(out, name), join(lies, name), { recursive: true })
    cpSync(join(entry('threshold'), 'threshold.node'), join(lies, name, 'threshold.node'))
    chmodSync(lies, 0o755)
    emptied()
    const taken = installPlainly(env)
    assert.equal(taken.status, 0, taken.stderr)
    assert.match(taken.stdout, /threshold addon taken prebuilt from .*\/checkout\/prebuilt\//)
    chmodSync(lies, 0o777)
    refused(env, /prebuilt can be written by others: .* is not used/)
    chmodSync(lies, 0o755)
    // An addon that this host cannot load is removed, whatever its package.json states.
    const [file, manifest] = [join(lies, name, 'threshold.node'), join(lies, name, 'package.json')]
    writeFileSync(file, 'of another C library')
    const description = JSON.parse(readFileSync(manifest, 'utf8')) as {
      custody: { threshold: { sha256: string } }
    }
    description.custody.threshold.sha256 = createHash('sha256')
      .update(readFileSync(file))
      .digest('hex')
    writeFileSync(manifest, JSON.stringify(description))
    refused(
      env,
      /the threshold addon of .*prebuilt.* cannot be loaded on this host: it is not used/,
    )
  },
)
