import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const folder = mkdtempSync(join(tmpdir(), 'signer-setup-'))
after(() => { rmSync(folder, { recursive: true, force: true }) })
const run = (args: string[], env: NodeJS.ProcessEnv = {}, script = 'setup') => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, `../src/${script}.ts`), ...args], { env: { ...process.env, ...env }, encoding: 'utf8', input: '' })
  return { status, stdout, stderr }
}

test('local: three homes and the platform, once', () => {
  const parent = join(folder, 'local')
  const args = ['--home', parent, '--ports', '21001,21002,21003']
  assert.equal(run(args).status, 0)
  const before = readFileSync(join(parent, 'node-2', 'config.json'), 'utf8') + readFileSync(join(parent, 'platform', 'peers.json'), 'utf8')
  assert.equal(run(args).status, 0)
  assert.equal(readFileSync(join(parent, 'node-2', 'config.json'), 'utf8') + readFileSync(join(parent, 'platform', 'peers.json'), 'utf8'), before)
  for (const name of ['node-1', 'node-2', 'node-3', 'platform']) assert.equal(statSync(join(parent, name)).mode & 0o777, 0o700)
  const peers = JSON.parse(readFileSync(join(parent, 'platform', 'peers.json'), 'utf8'))
  assert.equal(peers.nodes.length, 3)
  assert.deepEqual(Object.keys(peers.nodes[0]).sort(), ['certificate', 'home', 'host', 'identity', 'node', 'port', 'socket', 'url'])
  // The recovery secret is in no node's home.
  const { secret } = JSON.parse(readFileSync(join(parent, 'recovery-1'), 'utf8'))
  assert.ok(!readFileSync(join(parent, 'node-1', 'config.json'), 'utf8').includes(secret))
})

test('a deep home gets a short socket path', () => {
  const parent = join(folder, 'd'.repeat(60), 'e'.repeat(60))
  mkdirSync(parent, { recursive: true })
  assert.equal(run(['--home', parent, '--ports', '21001,21002,21003']).status, 0)
  const { nodes } = JSON.parse(readFileSync(join(parent, 'platform', 'peers.json'), 'utf8'))
  for (const { socket } of nodes) {
    assert.ok(Buffer.byteLength(socket) <= 104)
    assert.equal(statSync(join(socket, '..')).mode & 0o777, 0o700)
    rmSync(join(socket, '..'), { recursive: true })
  }
})

test('mainnet: one node at a time, a passphrase, no shared home, no plain key file', () => {
  const passphrase = join(folder, 'passphrase')
  writeFileSync(passphrase, 'a long enough passphrase\n', { mode: 0o600 })
  const env = { CUSTODY_SIGNER_PASSPHRASE_FILE: passphrase }
  const home = join(folder, 'mainnet')
  assert.match(run(['--home', home, '--ports', '1,2,3', '--mode', 'mainnet'], env).stderr, /one node at a time/)
  assert.match(run(['--home', home, '--ports', '21001', '--mode', 'mainnet', '--node', '1']).stderr, /passphrase/)
  assert.match(run(['--home', join(folder, 'local'), '--ports', '21001', '--mode', 'mainnet', '--node', '1'], env).stderr, /shared/)
  const halves = [1, 2, 3].map((node) => {
    const { status, stdout, stderr } = run(['--home', `${home}-${node}`, '--ports', String(21_000 + node), '--mode', 'mainnet', '--node', String(node)], env)
    assert.equal(status, 0, stderr)
    return JSON.parse(stdout)
  })
  const file = join(folder, 'peers.json')
  writeFileSync(file, JSON.stringify({ peers: halves.slice(1), platform_certificate: readFileSync(join(folder, 'local', 'platform', 'tls.crt'), 'utf8'), recovery_public_key: '11'.repeat(32) }))
  assert.equal(run(['--home', `${home}-1`, '--ports', '21001', '--mode', 'mainnet', '--node', '1', '--peers', file], env).status, 0)
  const config = JSON.parse(readFileSync(join(`${home}-1`, 'config.json'), 'utf8'))
  assert.equal(config.kek.kind, 'wrapped')
  assert.equal(JSON.parse(readFileSync(join(`${home}-1`, 'keys.json'), 'utf8')).keys[0].kek.kind, 'passphrase')
  assert.match(run(['--home', `${home}-1`], {}, 'main').stderr, /passphrase/)
  writeFileSync(join(`${home}-1`, 'config.json'), JSON.stringify({ ...config, kek: { kind: 'file', path: 'kek' } }))
  assert.match(run(['--home', `${home}-1`], env, 'main').stderr, /local only/)
  assert.ok(!existsSync(join(`${home}-1`, 'kek')))
})

test('mainnet: the keys are wrapped by the provider that is named, once', () => {
  const passphrase = join(folder, 'another-passphrase')
  writeFileSync(passphrase, 'a long enough passphrase\n', { mode: 0o600 })
  const home = join(folder, 'provider')
  const args = ['--home', home, '--ports', '21001', '--mode', 'mainnet', '--node', '1']
  assert.match(run([...args, '--kek', 'file']).stderr, /local only/)
  assert.match(run([...args, '--kek', 'vault:key=x']).stderr, /--kek: vault address/)
  assert.match(run([...args, '--kek', 'vault:address=http://127.0.0.1:9,key=x,token_file=/nowhere']).stderr, /vault: token_file: \/nowhere cannot be read/)
  assert.ok(!existsSync(join(home, 'keys.json')), 'nothing was made for a provider that does not answer')
  const { status, stderr } = run([...args, '--kek', `passphrase:file=${passphrase}`])
  assert.equal(status, 0, stderr)
  const [{ kek }] = JSON.parse(readFileSync(join(home, 'keys.json'), 'utf8')).keys
  assert.deepEqual([kek.kind, kek.file], ['passphrase', passphrase])
  // The second call need not say it again, and may not say another.
  assert.equal(run(args).status, 0)
  assert.match(run([...args, '--kek', 'vault:address=http://127.0.0.1:9,key=x,token_file=/nowhere']).stderr, /wrapped by passphrase already/)
})

test('unclear calls get a sentence', () => {
  assert.match(run([]).stderr, /usage/)
  assert.match(run(['--home', folder, '--ports', 'x']).stderr, /port numbers/)
  assert.match(run(['--home', join(folder, 'none')], {}, 'main').stderr, /ENOENT/)
})
