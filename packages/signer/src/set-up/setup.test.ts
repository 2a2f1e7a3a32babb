import assert from 'node:assert/strict'
import { spawnSync, type ChildProcess } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { freePorts, runNode, type HomeConfig } from '../../testing/data-dirs.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-setup-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})
const run = (args: string[], env: NodeJS.ProcessEnv = {}, script = 'setup') => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, `../${script}.ts`), ...args],
    { env: { ...process.env, ...env }, encoding: 'utf8', input: '' },
  )
  return { status, stdout, stderr }
}

test('local: creates three data directories and the platform, once', () => {
  const parent = join(folder, 'local')
  const args = ['--home', parent, '--ports', '21001,21002,21003']
  assert.equal(run(args).status, 0)
  const before =
    readFileSync(join(parent, 'node-2', 'config.json'), 'utf8') +
    readFileSync(join(parent, 'platform', 'peers.json'), 'utf8')
  assert.equal(run(args).status, 0)
  assert.equal(
    readFileSync(join(parent, 'node-2', 'config.json'), 'utf8') +
      readFileSync(join(parent, 'platform', 'peers.json'), 'utf8'),
    before,
  )
  for (const name of ['node-1', 'node-2', 'node-3', 'platform'])
    assert.equal(statSync(join(parent, name)).mode & 0o777, 0o700)
  const peers = JSON.parse(readFileSync(join(parent, 'platform', 'peers.json'), 'utf8'))
  assert.equal(peers.nodes.length, 3)
  assert.deepEqual(Object.keys(peers.nodes[0]).sort(), [
    'certificate',
    'home',
    'host',
    'identity',
    'node',
    'port',
    'socket',
    'url',
  ])
  // The recovery secret is not in any node's home.
  const { secret } = JSON.parse(readFileSync(join(parent, 'recovery-1'), 'utf8'))
  assert.ok(!readFileSync(join(parent, 'node-1', 'config.json'), 'utf8').includes(secret))
})

test('a data directory with a long path gets a short socket path', () => {
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

test('mainnet: sets up one node with a passphrase, and refuses a plain key file', () => {
  const passphrase = join(folder, 'passphrase')
  writeFileSync(passphrase, 'a long enough passphrase\n', { mode: 0o600 })
  const env = { CUSTODY_SIGNER_PASSPHRASE_FILE: passphrase }
  const home = join(folder, 'mainnet')
  assert.match(
    run(['--home', home, '--ports', '1,2,3', '--mode', 'mainnet'], env).stderr,
    /a node on its own host has one port/,
  )
  assert.match(
    run(['--home', home, '--ports', '21001', '--mode', 'mainnet', '--node', '1']).stderr,
    /passphrase/,
  )
  assert.match(
    run(
      ['--home', join(folder, 'local'), '--ports', '21001', '--mode', 'mainnet', '--node', '1'],
      env,
    ).stderr,
    /shared/,
  )
  const halves = [1, 2, 3].map((node) => {
    const { status, stdout, stderr } = run(
      [
        '--home',
        `${home}-${node}`,
        '--ports',
        String(21_000 + node),
        '--mode',
        'mainnet',
        '--node',
        String(node),
      ],
      env,
    )
    assert.equal(status, 0, stderr)
    return JSON.parse(stdout)
  })
  const file = join(folder, 'peers.json')
  writeFileSync(
    file,
    JSON.stringify({
      peers: halves.slice(1),
      platform_certificate: readFileSync(join(folder, 'local', 'platform', 'tls.crt'), 'utf8'),
      recovery_public_key: '11'.repeat(32),
    }),
  )
  assert.equal(
    run(
      [
        '--home',
        `${home}-1`,
        '--ports',
        '21001',
        '--mode',
        'mainnet',
        '--node',
        '1',
        '--peers',
        file,
      ],
      env,
    ).status,
    0,
  )
  const config = JSON.parse(readFileSync(join(`${home}-1`, 'config.json'), 'utf8'))
  assert.equal(config.kek.kind, 'wrapped')
  assert.equal(
    JSON.parse(readFileSync(join(`${home}-1`, 'keys.json'), 'utf8')).keys[0].kek.kind,
    'passphrase',
  )
  assert.match(run(['--home', `${home}-1`], {}, 'main').stderr, /passphrase/)
  writeFileSync(
    join(`${home}-1`, 'config.json'),
    JSON.stringify({ ...config, kek: { kind: 'file', path: 'kek' } }),
  )
  assert.match(run(['--home', `${home}-1`], env, 'main').stderr, /not allowed with mode mainnet/)
  assert.ok(!existsSync(join(`${home}-1`, 'kek')))
})

test('mainnet: a named provider wraps the keys, and cannot be changed by a second set-up', () => {
  const passphrase = join(folder, 'another-passphrase')
  writeFileSync(passphrase, 'a long enough passphrase\n', { mode: 0o600 })
  const home = join(folder, 'provider')
  const args = ['--home', home, '--ports', '21001', '--mode', 'mainnet', '--node', '1']
  assert.match(run([...args, '--kek', 'file']).stderr, /not allowed with mode mainnet/)
  assert.match(run([...args, '--kek', 'vault:key=x']).stderr, /--kek: vault address/)
  assert.match(
    run([...args, '--kek', 'vault:address=http://127.0.0.1:9,key=x,token_file=/nowhere']).stderr,
    /vault: token_file: \/nowhere cannot be read/,
  )
  assert.ok(
    !existsSync(join(home, 'keys.json')),
    'nothing was made for a provider that does not answer',
  )
  const { status, stderr } = run([...args, '--kek', `passphrase:file=${passphrase}`])
  assert.equal(status, 0, stderr)
  const [{ kek }] = JSON.parse(readFileSync(join(home, 'keys.json'), 'utf8')).keys
  assert.deepEqual([kek.kind, kek.file], ['passphrase', passphrase])
  // The second call may omit the value, but may not give another one.
  assert.equal(run(args).status, 0)
  assert.match(
    run([...args, '--kek', 'vault:address=http://127.0.0.1:9,key=x,token_file=/nowhere']).stderr,
    /already wrapped by passphrase/,
  )
})

test('separate hosts exchange public files only; a wrong, missing or swapped file is named', async () => {
  const at = (...names: string[]) => join(folder, 'apart', ...names)
  mkdirSync(at())
  writeFileSync(at('passphrase'), 'a long enough passphrase\n', { mode: 0o600 })
  const env = { CUSTODY_SIGNER_PASSPHRASE_FILE: at('passphrase') }
  const ports = await freePorts(3)
  const node = (n: number, ...more: string[]) =>
    run(['--mode', 'local', '--node', String(n), '--home', at(`n${n}`), ...more], env)
  const first = (n: number) =>
    node(n, '--host', '127.0.0.1', '--port', String(ports[n - 1]), '--out', at(`node-${n}.json`))
  const good = (n: number) => [
    '--peers',
    [1, 2, 3]
      .filter((other) => other !== n)
      .map((other) => at(`node-${other}.json`))
      .join(','),
    '--platform',
    at('platform.json'),
    '--recovery',
    at(`recovery-${n}.pub.json`),
  ]
  assert.match(node(1, ...good(1)).stderr, /no keys yet/)
  for (const n of [1, 2, 3]) {
    const made = first(n)
    assert.equal(made.status, 0, made.stderr)
    assert.match(made.stderr, new RegExp(`signer node ${n}   ([0-9a-f]{4}-){4}[0-9a-f]{4}   127`))
    assert.equal(first(n).stderr, made.stderr, 'the same keys again')
    assert.equal(
      run(['--as', 'recovery', '--node', String(n), '--out', at(`recovery-${n}`)]).status,
      0,
    )
  }
  assert.match(
    run(['--as', 'recovery', '--node', '1', '--out', at('recovery-1')]).stderr,
    /never overwritten/,
  )
  assert.equal(
    run([
      '--as',
      'platform',
      '--mode',
      'local',
      '--home',
      at('platform'),
      '--out',
      at('platform.json'),
    ]).status,
    0,
  )
  for (const file of ['node-1.json', 'platform.json', 'recovery-1.pub.json'])
    assert.doesNotMatch(readFileSync(at(file), 'utf8'), /PRIVATE|secret/)

  writeFileSync(at('cut.json'), readFileSync(at('node-2.json'), 'utf8').slice(0, 300))
  writeFileSync(
    at('real.json'),
    readFileSync(at('node-2.json'), 'utf8').replace('"local"', '"mainnet"'),
  )
  writeFileSync(
    at('damaged.json'),
    readFileSync(at('node-2.json'), 'utf8').replace(/MII\w{9}/, 'MIIAAAAAAAAA'),
  )
  const swapped = (option: string, value: string) => {
    const args = good(1)
    args[args.indexOf(option) + 1] = value
      .split(',')
      .map((name) => at(name))
      .join(',')
    const { status, stderr } = node(1, ...args)
    assert.equal(status, 1)
    return stderr
  }
  for (const [option, value, said] of [
    ['--peers', 'node-2.json,node-9.json', /--peers: .*node-9\.json does not exist/],
    ['--peers', 'node-2.json', /the public half of signer node 3 is missing/],
    [
      '--peers',
      'node-1.json,node-2.json',
      /node-1\.json is the public half of signer node 1, this node itself; the files of nodes 2 and 3 are required/,
    ],
    [
      '--peers',
      'node-2.json,node-2.json,node-3.json',
      /node-2\.json and node-2\.json both belong to signer node 2/,
    ],
    [
      '--peers',
      'node-2.json,platform.json',
      /platform\.json is the public half of the platform, which is not allowed for this option/,
    ],
    ['--peers', 'node-3.json,cut.json', /cut\.json is not JSON: it may have been truncated/],
    ['--peers', 'node-3.json,damaged.json', /damaged\.json is damaged/],
    [
      '--peers',
      'node-3.json,real.json',
      /real\.json was made with --mode mainnet, this home with --mode local/,
    ],
    [
      '--platform',
      'node-2.json',
      /node-2\.json is the public half of signer node 2, which is not allowed for this option/,
    ],
    [
      '--recovery',
      'recovery-2.pub.json',
      /--recovery: .*recovery-2\.pub\.json belongs to signer node 2, not to node 1/,
    ],
    [
      '--recovery',
      'recovery-1.secret.json',
      /contains a secret: transfer only files with a public half/,
    ],
    ['--recovery', 'n1/tls.key', /contains a secret/],
  ] as const)
    assert.match(swapped(option, value), said)
  assert.ok(!existsSync(at('n1', 'config.json')), 'nothing was written')

  const printed = [1, 2, 3].map((n) => {
    const { status, stderr } = node(n, ...good(n))
    assert.equal(status, 0, stderr)
    return stderr
      .split('\n')
      .filter((line) => /-[0-9a-f]{4}/.test(line) && !line.includes('config.json'))
      .join('\n')
  })
  assert.equal(new Set(printed).size, 1, 'all three print the same, to be compared')
  assert.equal(printed[0]?.split('\n').length, 4)
  assert.match(node(1, ...good(1)).stderr, /is already set up/)
  const halves = [1, 2, 3].map((n) => at(`node-${n}.json`)).join(',')
  assert.equal(
    run(['--as', 'platform', '--mode', 'local', '--home', at('platform'), '--peers', halves])
      .status,
    0,
  )

  const check = (home: string) => run(['--check', '--home', at(home)])
  assert.match(
    check('n1').stdout,
    /signer node 2 \(127\.0\.0\.1:\d+\) cannot be reached: no process listens at this address/,
  )
  const nodes: ChildProcess[] = []
  process.env['CUSTODY_SIGNER_PASSPHRASE_FILE'] = at('passphrase')
  try {
    nodes.push(...(await Promise.all([1, 2, 3].map((n) => runNode(at(`n${n}`))))))
    for (const home of ['n1', 'n2', 'n3', 'platform']) {
      const { status, stdout } = check(home)
      assert.equal(status, 0, stdout)
      assert.equal(stdout.match(/: ok$/gm)?.length, home === 'platform' ? 3 : 2)
    }
    // Another key pair with the same address, another part of a third node, or another mode.
    const edited = (edit: (config: HomeConfig) => void) => {
      const config = JSON.parse(readFileSync(at('n1', 'config.json'), 'utf8')) as HomeConfig
      edit(config)
      mkdirSync(at('edited'), { recursive: true, mode: 0o700 })
      for (const name of ['tls.key', 'tls.crt', 'identity.key', 'identity.pub'])
        writeFileSync(at('edited', name), readFileSync(at('n1', name)))
      writeFileSync(at('edited', 'config.json'), JSON.stringify(config))
      const { status, stdout } = check('edited')
      assert.equal(status, 1)
      return stdout
    }
    const wrong = edited((config) => {
      config.peers[0].port = ports[2]
    })
    assert.match(
      wrong,
      /signer node 2 .* presents another certificate than this configuration contains/,
    )
    assert.match(
      edited((config) => {
        config.mode = 'mainnet'
      }),
      /signer node 3 .* has --mode local, this home --mode mainnet/,
    )
    const stranger = JSON.parse(
      run(['--as', 'platform', '--mode', 'local', '--home', at('stranger')]).stdout,
    ) as { certificate: string }
    assert.match(
      edited((config) => {
        config.platform_certificate = stranger.certificate
      }),
      /signer node 2 .* has another public half of the platform/,
    )
    for (const name of ['tls.key', 'tls.crt'])
      writeFileSync(at('platform', name), readFileSync(at('stranger', name)))
    assert.match(check('platform').stdout, /does not accept the certificate of this host/)
  } finally {
    delete process.env['CUSTODY_SIGNER_PASSPHRASE_FILE']
    for (const each of nodes) each.kill('SIGKILL')
    await Promise.all(
      nodes.map(
        (each) =>
          each.exitCode ?? each.signalCode ?? new Promise((resolve) => each.once('exit', resolve)),
      ),
    )
  }
})

test('explains invalid arguments', () => {
  assert.match(run([]).stderr, /Usage/)
  assert.match(run(['--home', folder, '--ports', 'x']).stderr, /port numbers/)
  assert.match(run(['--home', join(folder, 'none')], {}, 'main').stderr, /ENOENT/)
})
