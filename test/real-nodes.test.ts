import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import {
  builtPath,
  findNode,
  nodeForTests,
  REAL_NODES,
  type RealNode,
} from '../testing/real-nodes.ts'
import { root } from '../testing/tree.ts'
import { waitFor } from '../testing/wait-for.ts'

const folder = mkdtempSync(join(tmpdir(), 'real-nodes-'))
const [cache, bin] = [join(folder, 'cache'), join(folder, 'bin')]
const NAMES = Object.keys(REAL_NODES) as RealNode[]
const VARIABLES = [
  'PATH',
  'CUSTODY_NODES_CACHE',
  ...Object.values(REAL_NODES).map(({ variable }) => variable),
]
const saved = VARIABLES.map((name) => [name, process.env[name]] as const)
const savedPath = process.env['PATH']

beforeEach(() => {
  for (const each of [cache, bin]) rmSync(each, { recursive: true, force: true })
  mkdirSync(bin)
  for (const { variable } of Object.values(REAL_NODES)) delete process.env[variable]
  process.env['CUSTODY_NODES_CACHE'] = cache
  process.env['PATH'] = bin
})
after(() => {
  for (const [name, value] of saved) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
  rmSync(folder, { recursive: true, force: true })
})

function program(path: string, text = 'echo version'): string {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `#!/bin/sh\n${text}\n`)
  chmodSync(path, 0o755)
  return path
}

/** Runs `nodes:build` with the fake programs of `bin`. */
const build = (...words: string[]) =>
  spawnSync(process.execPath, [join(root, 'scripts/nodes-build.mjs'), ...words], {
    encoding: 'utf8',
    env: { ...process.env, PATH: [bin, savedPath].join(delimiter) },
  })

test('finds each node by its variable, then among the builds, then in the PATH', () => {
  for (const name of NAMES) {
    assert.equal(findNode(name), null)
    const { skip } = nodeForTests(name)
    assert.equal(skip, `${name} is not installed (${REAL_NODES[name].howToGet})`)
    const installed = program(join(bin, name))
    assert.equal(findNode(name), installed)
    const built = builtPath(name)
    if (built !== null) {
      program(built)
      assert.equal(findNode(name), built)
    }
    const { variable } = REAL_NODES[name]
    process.env[variable] = program(join(folder, 'named'))
    assert.deepEqual(nodeForTests(name), { path: join(folder, 'named'), skip: false })
    process.env[variable] = join(folder, 'nothing')
    assert.throws(() => findNode(name), new RegExp(`^Error: ${variable}=.*does not exist`))
  }
})

test('a relative CUSTODY_NODES_CACHE is refused', () => {
  process.env['CUSTODY_NODES_CACHE'] = 'cache'
  assert.throws(() => builtPath('geth'), /CUSTODY_NODES_CACHE=cache: must be an absolute path/)
})

test('builds a node once, and lists it', () => {
  program(
    join(bin, 'go'),
    '[ "$1" = version ] && exit 0\nprintf "#!/bin/sh\\necho geth version 9\\n" > "$GOBIN/geth"\nchmod +x "$GOBIN/geth"',
  )
  const first = build('geth')
  assert.equal(first.status, 0, first.stderr)
  assert.match(first.stdout, /geth: built in \d+ s/)
  assert.deepEqual(readdirSync(cache), [`geth-${REAL_NODES.geth.version}`])
  const second = build('geth')
  assert.doesNotMatch(second.stdout, /built in/)
  assert.match(build('--list').stdout, /^geth +geth version 9, .*geth-/m)
})

test('names what a build needs and how to install it', () => {
  program(join(bin, 'go'), 'exit 1')
  const { status, stderr, stdout } = build('geth')
  assert.equal(status, 1)
  assert.match(stderr, /geth: Go is not installed \(apt-get install /)
  assert.match(stdout, /^not available: geth$/m)
  assert.match(build('parity').stderr, /There is no node parity\. Nodes: geth, bitcoind, litecoind/)
  process.env['GETH'] = join(folder, 'nothing')
  assert.match(build('geth').stderr, /GETH=.* does not exist/)
})

test('for a release, bitcoind is left out where a build tool is missing', () => {
  program(join(bin, 'cmake'), 'exit 1')
  for (const name of ['geth', 'litecoind']) program(join(bin, name))
  const { status, stdout } = build('--release')
  assert.equal(status, 0)
  assert.match(stdout, /bitcoind: left out, because .*cmake/)
  assert.match(stdout, /^available: geth, litecoind$/m)
})

test('a failed or interrupted build leaves nothing', async () => {
  program(join(bin, 'go'), '[ "$1" = version ] && exit 0\ntouch "$GOBIN/half"\nexit 1')
  assert.equal(build('geth').status, 1)
  assert.deepEqual(readdirSync(cache), [])

  program(join(bin, 'go'), '[ "$1" = version ] && exit 0\ntouch "$GOBIN/half"\nsleep 1000')
  const child = spawn(process.execPath, [join(root, 'scripts/nodes-build.mjs'), 'geth'], {
    stdio: 'ignore',
    env: { ...process.env, PATH: [bin, savedPath].join(delimiter) },
  })
  const exit = new Promise((resolve) => child.once('exit', resolve))
  const half = () => readdirSync(cache).some((name) => readdirSync(join(cache, name)).length > 0)
  await waitFor('the build has begun', half)
  child.kill('SIGTERM')
  await exit
  assert.deepEqual(readdirSync(cache), [])

  // A killed process cannot remove its folder; the next build does.
  mkdirSync(join(cache, `.building-${child.pid}-killed`))
  program(join(bin, 'go'), '[ "$1" = version ]')
  build('geth')
  assert.deepEqual(readdirSync(cache), [])
})
