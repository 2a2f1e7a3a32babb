import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { shortageOf } from '../../core/data-dir.ts'
import { audit } from '../audit/audit.ts'
import { latestAudit, recordedAudit } from '../audit/recorded.ts'
import { Sanctions, sanctionsFile } from '../../custody/aml/ofac.ts'
import { openDatabase, type Database } from '../../core/database/pool.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { bindDatabase, bindHome, checkHome, checkNodesNetwork } from './binding.ts'
import { readiness } from './health/readiness.ts'
import { registerCollectors } from './health/collect-metrics.ts'
import { startPlatform } from './platform.ts'
import { checkPort } from './preflight.ts'
import { hostRuntime, type Runtime } from './runtime.ts'
import { post } from '../../core/ledger/post.ts'
import { createMetrics } from '../../core/metrics.ts'
import { DatabaseHold } from '../../core/engine/database-hold.ts'
import { Networks } from '../../core/engine/networks.ts'
import { partialApplication } from '../../../testing/partial-application.ts'
import { NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'
import { readSettings } from '../../core/settings/settings.ts'
import { registry, useDatabase } from '../../../testing/deposits-support.ts'
import { HANG_MS } from '../../../../../testing/wait-for.ts'

/**
 * Tests of configurations with which a start fails, and of the reports about an unhealthy platform.
 */
const folder = mkdtempSync(join(tmpdir(), 'custody-start-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})
const database = useDatabase({ server: 'own' })
const MAIN = fileURLToPath(new URL('../../main.ts', import.meta.url))

/** Runs `npm start` with settings that it must refuse, and returns its output. */
function refused(env: Record<string, string>): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN], {
    encoding: 'utf8',
    timeout: HANG_MS,
    env: { PATH: process.env['PATH'] ?? '', PORT: '0', ...env },
  })
  assert.equal(status, 1, stdout + stderr)
  assert.equal(stdout, '')
  const lines = stderr.trim().split('\n')
  assert.equal(lines.length, 1, stderr)
  return lines[0] as string
}

/** Returns three nodes that return their status, or do not respond. */
const nodes = (...statuses: (object | null)[]) =>
  ({
    peers: statuses.map((_, at) => ({ node: at + 1 })),
    call: async (node: number) => {
      const status = statuses[node - 1]
      if (!status) throw new NodeUnavailable(node, 'cannot be reached')
      return status
    },
    certificateExpiries: () => ({ platform: new Date(0), nodes: new Map() }),
  }) as unknown as SignerNodes

const home = (name: string): string => {
  const path = join(folder, name)
  mkdirSync(path)
  return path
}

test('a data directory can only be used with the network type of its first start', () => {
  const first = home('bound')
  bindHome(first, 'local')
  bindHome(first, 'local')
  assert.throws(() => {
    bindHome(first, 'mainnet')
  }, /CUSTODY_NETWORK=mainnet: the home .*bound belongs to the network "local".*CUSTODY_HOME/)
  const real = home('real')
  bindHome(real, 'mainnet')
  assert.throws(() => {
    bindHome(real, 'local')
  }, /belongs to the network "mainnet"/)
  const rehearsal = home('rehearsal')
  bindHome(rehearsal, 'regtest-1337')
  for (const other of ['regtest-4242', 'local', 'mainnet'] as const)
    assert.throws(() => {
      bindHome(rehearsal, other)
    }, /belongs to the network "regtest-1337"/)
  const older = home('older')
  mkdirSync(join(older, 'signers', 'platform'), { recursive: true })
  writeFileSync(join(older, 'signers', 'platform', 'peers.json'), '{"mode":"local"}')
  assert.throws(() => {
    bindHome(older, 'mainnet')
  }, /belongs to the network "local"/)
  bindHome(older, 'local')
})

test('a database can only be used with the network type of its first start', async () => {
  await bindDatabase(database.get(), 'local')
  await bindDatabase(database.get(), 'local')
  await assert.rejects(
    bindDatabase(database.get(), 'mainnet'),
    /this database belongs to the network "local".*DATABASE_URL/,
  )
  assert.equal((await database.get().query('select network from installation')).length, 1)
})

test('a failed start stores no network type, and leaves another network’s database unchanged', async () => {
  const { socket } = (await database
    .admin()
    .one<{ socket: string }>(`select current_setting('unix_socket_directories') socket`))!
  const url = (name: string) => `postgresql://custody@/${name}?host=${encodeURIComponent(socket)}`
  const opened = async <T>(name: string, read: (database: Database) => Promise<T>): Promise<T> => {
    const one = openDatabase(url(name))
    return read(one).finally(() => one.close())
  }
  for (const name of ['unbound', 'theirs']) await database.admin().query(`create database ${name}`)
  const [unbound, config] = [join(folder, 'unbound'), join(folder, 'none.json')]
  const start = (name: string) =>
    refused({
      CUSTODY_HOME: unbound,
      CUSTODY_NETWORK: 'mainnet',
      CUSTODY_CONFIG: config,
      CUSTODY_LOG_LEVEL: 'silent',
      DATABASE_URL: url(name),
    })

  assert.match(start('unbound'), /signers/, 'there are no signer nodes')
  assert.ok(!existsSync(join(unbound, 'network')))
  assert.deepEqual(
    await opened('unbound', (each) => each.query('select network from installation')),
    [],
  )
  checkHome(unbound, 'local')

  await opened('theirs', (each) =>
    each.query(
      `create table installation (network text); insert into installation values ('local')`,
    ),
  )
  assert.match(
    start('theirs'),
    /CUSTODY_NETWORK=mainnet: this database belongs to the network "local"/,
  )
  assert.deepEqual(
    await opened('theirs', (each) =>
      each.query(
        `select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
      ),
    ),
    [{ relname: 'installation' }],
  )
})

test('a start refuses signer nodes of another network type, and ignores unreachable nodes', async () => {
  const local = { ready: true, mode: 'local' }
  await checkNodesNetwork(nodes(local, null, local), 'local')
  await assert.rejects(
    checkNodesNetwork(nodes(null, null, local), 'mainnet'),
    /signer node 3 belongs to the network "local".*CUSTODY_SIGNERS/,
  )
})

test('an audit fails if it compared nothing, or could not check some coins in the ledger', async () => {
  const services = partialApplication({
    database: database.get(),
    registry,
    networks: new Networks([]),
    environment: { ...systemEnvironment(), sleep: async () => undefined },
  })
  const empty = await audit(services)
  assert.deepEqual([empty.ok, empty.compared, empty.differences], [false, 0, []])
  assert.equal(await latestAudit(database.get()), undefined)
  const { id } = (await database
    .get()
    .one<{ id: string }>(`insert into workspaces (name) values ('acme') returning id`))!
  await post(database.get(), 'test', 'audit', [
    { workspace: id, asset: 'ETH', kind: 'tank', amount: 5n },
    { workspace: id, asset: 'ETH', kind: 'chain', amount: -5n },
  ])
  const unseen = await recordedAudit(services)
  assert.equal(unseen.ok, false)
  const { differences, compared } = (await latestAudit(database.get()))!
  assert.deepEqual([differences, compared], [1, 0], 'who watches sees it')
  assert.deepEqual(
    unseen.differences.map(({ subject, network, workspace, ledger }) => [
      subject,
      network,
      workspace,
      ledger,
    ]),
    [['not compared', 'ETH', 'acme', '0.000000000000000005']],
  )
})

test('readiness and metrics report when signing is impossible', async () => {
  const up = { ready: true, mode: 'local' }
  const metrics = createMetrics()
  const at = (...statuses: (object | null)[]) =>
    partialApplication({
      database: database.get(),
      hold: new DatabaseHold(),
      registry,
      networks: new Networks([]),
      prices: { price: () => null },
      metrics,
      environment: systemEnvironment(),
      settings: { home: folder, network: 'local' },
      aml: { sanctions: { list: { published: '2030-01-31' } } },
      signers: nodes(...statuses),
    })
  const others = {
    worker: 'no worker has ever run; transfers are accepted and wait',
    scanner: 'no scanner has ever run; deposits are not detected, and transfers are not confirmed',
    clocks: 'ok',
  }
  assert.deepEqual((await readiness(at(up, up, null))).checks, {
    database: 'ok',
    records: 'ok',
    disk: 'ok',
    loops: 'ok',
    prices: 'ok',
    signing: 'ok',
    ...others,
    signer_1: 'ok',
    signer_2: 'ok',
    signer_3: 'cannot be reached',
  })
  const dead = await readiness(at(null, up, { ready: false, mode: 'local' }))
  assert.deepEqual(
    [dead.ready, dead.signing, dead.checks['signer_3']],
    [true, false, 'waits to be restored'],
  )
  assert.match(
    dead.checks['signing'] ?? '',
    /^dead: 1 of 3 signer nodes can sign, 2 are required; transfers are accepted and wait/,
  )
  registerCollectors(at(null, up, null))
  const text = await metrics.text()
  for (const line of [
    'custody_signing_possible 0',
    'custody_signer_up{node="1"} 0',
    'custody_signer_up{node="2"} 1',
    'custody_scrape_failed 0',
  ])
    assert.ok(text.includes(`${line}\n`), line)
})

test('on mainnet, readiness fails until a list of sanctioned addresses is loaded that is current', async () => {
  const file = join(folder, 'sanctions.json')
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)
  const load = (path: string, published: string) =>
    writeFileSync(
      path,
      JSON.stringify({
        source: 'test',
        published,
        addresses: [{ asset: 'ETH', address: `0x${'12'.repeat(20)}` }],
      }),
    )
  const log = { info: () => undefined, error: () => undefined } as never
  const at = async (network: 'local' | 'mainnet', path: () => string) => {
    const { ready, checks } = await readiness(
      partialApplication({
        database: database.get(),
        hold: new DatabaseHold(),
        registry,
        networks: new Networks([]),
        prices: { price: () => null },
        settings: { network },
        aml: { sanctions: new Sanctions(path, log) },
        environment: systemEnvironment(),
        signers: nodes(null, null, null),
      }),
    )
    return [ready, checks['sanctions']] as const
  }
  const shipped = () => sanctionsFile(join(folder, 'nowhere'), null)
  const [isReady, why] = await at('mainnet', shipped)
  assert.equal(isReady, false, 'with the list of the release')
  assert.match(
    String(why),
    /^OFAC's list of 2024-09-27 was \d+ days old when it was loaded, and must be younger than 30: .*run `custody aml refresh-ofac sdn_advanced\.xml`$/,
  )
  assert.deepEqual(await at('local', shipped), [true, undefined])
  for (const [ago, ready] of [
    [0, true],
    [1, true],
    [29, true],
    [31, false],
    [400, false],
  ] as const) {
    load(file, day(ago))
    assert.equal((await at('mainnet', () => file))[0], ready, `${ago} days`)
    assert.equal((await at('local', () => file))[0], true)
  }
  // A list that has become old since it was loaded raises an alert, and does not stop the service.
  load(file, day(100))
  const then = new Date(Date.now() - 90 * 86_400_000)
  utimesSync(file, then, then)
  assert.deepEqual(await at('mainnet', () => file), [true, 'ok'])
})

test('with a full disk, readiness fails and new transfers are refused', async () => {
  let now = 0
  const shortage = (bytesMin: number) => shortageOf(folder, () => now, bytesMin)
  assert.equal(shortage(0)(), null)
  assert.equal(shortageOf(join(folder, 'nowhere'), () => now)(), null)
  const full = shortage(2 ** 60)
  assert.equal(full(), 'the disk of the data folder has less than 1099511627776 MiB left')
  const hold = new DatabaseHold(full)
  assert.throws(() => hold.assertOpen(), {
    code: 'UNAVAILABLE',
    message: /^no new requests are accepted now: the disk of the data folder/,
  })
  hold.assertNone()
  const services = partialApplication({
    database: database.get(),
    hold,
    registry,
    networks: new Networks([]),
    prices: { price: () => null },
    settings: { network: 'local' },
    environment: systemEnvironment(),
    signers: nodes(null, null, null),
  })
  const { ready, checks } = await readiness(services)
  assert.deepEqual([ready, checks['disk']], [false, full()])
  now += 500
  assert.equal(full(), hold.shortage, 'the disk is not asked for each request')
})

test('a port in use is reported before any component starts', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => {
    other.listen(0, '127.0.0.1', resolve)
  })
  const { port } = other.address() as AddressInfo
  await assert.rejects(
    checkPort({ host: '127.0.0.1', port }),
    new RegExp(`port ${port} of 127.0.0.1 is in use.*PORT=${port + 1}`),
  )
  const said = refused({ CUSTODY_HOME: join(folder, 'port'), PORT: String(port) })
  assert.match(said, /^custody: port \d+ of 127\.0\.0\.1 is in use by another program/)
  await new Promise((resolve) => {
    other.close(resolve)
  })
  await assert.rejects(
    checkPort({ host: '203.0.113.7', port: 0 }),
    /CUSTODY_HOST=203\.0\.113\.7: is not an address of this machine/,
  )
})

test('an invalid setting prevents the start and is reported in one line', () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  symlinkSync('/nowhere', join(folder, 'dangling'))
  const bound = home('local-home')
  bindHome(bound, 'local')
  const cases: [Record<string, string>, RegExp][] = [
    [
      { CUSTODY_HOME: join(file, 'below') },
      /^custody: CUSTODY_HOME=.*a part of the path is a file/,
    ],
    [
      { CUSTODY_HOME: join(folder, 'dangling') },
      /^custody: CUSTODY_HOME=.*a link to a missing target/,
    ],
    [
      { CUSTODY_LOG_LEVEL: 'loud' },
      /^custody: CUSTODY_LOG_LEVEL=loud: must be one of trace, debug, info/,
    ],
    [
      { CUSTODY_HOME: bound, CUSTODY_NETWORK: 'mainnet' },
      /^custody: CUSTODY_NETWORK=mainnet: the home .* belongs to the network "local"/,
    ],
    [
      {
        CUSTODY_HOME: join(folder, 'a'),
        DATABASE_URL: 'postgresql://custody:hidden@127.0.0.1:1/custody',
      },
      /^custody: DATABASE_URL: no server responds there: start PostgreSQL/,
    ],
    [
      { DATABASE_URL: 'mysql://custody:hidden@127.0.0.1/custody' },
      /^custody: DATABASE_URL: must begin with postgresql:/,
    ],
    [
      { CUSTODY_HOME: join(folder, 'nothing'), CUSTODY_ROLE: 'api' },
      /^custody: CUSTODY_ROLE=api: the home/,
    ],
  ]
  for (const [env, expected] of cases) {
    const said = refused(env)
    assert.match(said, expected)
    assert.doesNotMatch(said, /hidden|\bE[A-Z]{4,}\b|at \w+ \(/, 'neither a password nor a stack')
  }
})

test('if the embedded database dies during a start, the start is repeated from the beginning', async () => {
  let [started, stopped] = [0, 0]
  const counted = async () => {
    stopped++
  }
  const dying = {
    ...database.get(),
    one: async () => {
      throw Object.assign(new Error('the database system is in recovery mode'), { code: '57P03' })
    },
    close: counted,
  }
  const runtime: Runtime = {
    ...hostRuntime('json'),
    log: { write: () => undefined },
    openDatabase: () => dying as Database,
    startPostgres: async () => {
      started++
      const url = 'postgresql://nowhere'
      return { url, ownerUrl: url, adminUrl: url, adopted: false, pid: () => null, stop: counted }
    },
    startLocal: async () => ({
      devnetUrl: 'http://127.0.0.1:1',
      ready: Promise.resolve(),
      stop: async () => undefined,
    }),
  }
  const settings = { ...readSettings({ CUSTODY_HOME: join(folder, 'dying') }), port: 0 }
  await assert.rejects(
    startPlatform(settings, async () => ({ close: () => undefined }), runtime),
    /recovery mode/,
  )
  assert.deepEqual([started, stopped], [5, 15])
})
