import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

/** Native addons built on one host, and taken on another that has no Rust. */
const root = join(import.meta.dirname, '../../..')
const folder = mkdtempSync(join(tmpdir(), 'custody-prebuilt-'))
const [out, copy, bin] = [join(folder, 'out'), join(folder, 'checkout'), join(folder, 'bin')]
after(() => rmSync(folder, { recursive: true, force: true }))
const hasCargo = ['cargo', join(process.env['CARGO_HOME'] ?? join(process.env['HOME'] ?? '', '.cargo'), 'bin', 'cargo')]
  .some((cargo) => spawnSync(cargo, ['--version']).status === 0)
const skip = hasCargo ? false : 'no cargo: there is nothing to build the package with'

const addon = join(copy, 'packages/threshold/native/threshold.node')
/** In the copy, where no Rust is. */
const there = (words: string[], env: Record<string, string> = {}) => spawnSync(process.execPath, words, {
  cwd: copy, encoding: 'utf8', env: { PATH: bin, HOME: folder, CARGO_HOME: folder, ...env },
})
const install = () => there(['scripts/build-native.mjs'], { CUSTODY_PREBUILT: out })
const emptied = () => { for (const file of [addon, join(copy, 'packages/key-encryption/native/pkcs11.node')]) rmSync(file, { force: true }) }

before(() => {
  if (skip) return
  const made = spawnSync(process.execPath, ['scripts/prebuild.mjs', '--out', out], { cwd: root, encoding: 'utf8' })
  assert.equal(made.status, 0, made.stderr)
  const filter = (path: string) => !path.endsWith('.node') && !path.endsWith('/target')
  for (const name of ['scripts', 'packages/threshold', 'packages/key-encryption/native']) cpSync(join(root, name), join(copy, name), { recursive: true, filter })
  for (const name of ['package.json', 'tsconfig.json']) cpSync(join(root, name), join(copy, name))
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  mkdirSync(bin)
})

test('a checkout without Rust takes the addons, and the threshold one signs', { skip, timeout: 120_000 }, () => {
  const taken = install()
  assert.equal(taken.status, 0, taken.stderr)
  assert.match(taken.stdout, /threshold addon taken prebuilt from .*\npkcs11 addon taken prebuilt from /)
  const signed = there(['--input-type=module', '--eval', `
    import { startSign } from './packages/threshold/src/index.ts'
    import { complete, keygenSessions, openVaults, sessionId } from './packages/threshold/test/helpers.ts'
    const vaults = await openVaults()
    const keys = await complete(keygenSessions(vaults, 'ed25519'))
    const id = sessionId()
    const sessions = new Map([1, 2].map((party) => [party, startSign({
      vault: vaults.get(party), key: keys.get(party), sessionId: id, participants: [1, 2], path: [], message: new Uint8Array(32) })]))
    const results = await complete(sessions)
    console.log(Buffer.from(results.get(1).signature).length)
  `])
  assert.deepEqual([signed.status, signed.stdout.trim()], [0, '64'], signed.stderr)
  assert.match(install().stdout, /threshold addon is up to date/)
})

test('a package of other sources, or one whose file was exchanged, is refused and says so', { skip, timeout: 60_000 }, () => {
  emptied()
  const source = join(copy, 'packages/threshold/native/src/lib.rs')
  appendFileSync(source, '// another line\n')
  const other = install()
  assert.equal(other.status, 1)
  assert.match(other.stderr, /the prebuilt threshold addon of .* was built from other Rust sources than this checkout's \([0-9a-f]{12}, not [0-9a-f]{12}\): it is not used/)
  assert.match(other.stderr, /cargo was not found/)
  assert.ok(!existsSync(addon))
  cpSync(join(root, 'packages/threshold/native/src/lib.rs'), source)
  const [made] = readdirSync(out)
  appendFileSync(join(out, made as string, 'threshold.node'), 'x')
  const changed = install()
  assert.equal(changed.status, 1)
  assert.match(changed.stderr, /threshold\.node is not the file that its package\.json describes/)
})
