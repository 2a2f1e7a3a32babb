import { randomBytes } from 'node:crypto'
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawnSync, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { DIES_WITH_US, Hosts, whyNoHosts, type Host } from '../hosts/network-hosts.ts'
import { openDatabase } from '../../src/core/database/pool.ts'

/**
 * PostgreSQL on three hosts under Patroni, with etcd on the same hosts, and HAProxy on a fourth
 * host, set up with the files in `deploy/patroni`. The platform is outside and connects through
 * HAProxy's Unix socket, because a network namespace does not separate files.
 */

const FILES = new URL('../../../../deploy/patroni/', import.meta.url)
const PROGRAMS = {
  patroni: 'patroni',
  etcd: 'etcd-server',
  haproxy: 'haproxy',
  nft: 'nftables',
  curl: 'curl',
  openssl: 'openssl',
  pg_ctl: 'postgresql',
  idna: 'python3-idna',
}
/**
 * Command prefix that runs a program as another user, because PostgreSQL refuses to run as root.
 */
const AS_NOBODY = ['unshare', '--user', '--map-user=65534', '--map-group=65534']
const START_MS = 120_000
/** Maximum lag in bytes of a standby that counts as following. */
const LAG_MAX = 1024 ** 2

const binaries = (): string | null =>
  globSync('/usr/lib/postgresql/*/bin/pg_ctl')
    .sort()
    .at(-1)
    ?.replace(/\/pg_ctl$/, '') ?? null
/**
 * Whether a program or Python module is installed. Debian's urllib3 needs the module idna for TLS,
 * but only recommends its package.
 */
const isThere = (program: string): boolean =>
  program === 'pg_ctl'
    ? binaries() !== null
    : program === 'idna'
      ? existsSync('/usr/lib/python3/dist-packages/idna')
      : ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].some(
          (folder) => existsSync(join(folder, program)),
        )

/** Returns why a cluster cannot be started here, or null if it can. */
export function whyNoCluster(): string | null {
  const missing = Object.entries(PROGRAMS)
    .filter(([program]) => !isThere(program))
    .map(([, name]) => name)
  return missing.length > 0
    ? `not installed (Debian: apt-get install ${missing.join(' ')})`
    : whyNoHosts()
}

/** A member of the cluster, as Patroni reports it. */
interface Member {
  name: string
  role: string
}

/** Failures of a database host. */
export const TROUBLES = [
  'PostgreSQL killed',
  'Patroni and PostgreSQL killed',
  'host gone',
  'network silent',
  'network reset',
] as const
export type Trouble = (typeof TROUBLES)[number]

export class Cluster {
  readonly #hosts: Hosts
  readonly #members: Host[]
  readonly #proxy: Host
  readonly #patroni = new Map<Host, ChildProcess>()
  readonly #socket: string
  readonly #folder: string
  readonly #passwords = {
    restapi: randomBytes(12).toString('hex'),
    superuser: randomBytes(12).toString('hex'),
    replication: randomBytes(12).toString('hex'),
    custody: randomBytes(12).toString('hex'),
  }

  /**
   * Creates the hosts of the cluster.
   * @param folder parent of the hosts' folders
   */
  constructor(folder: string) {
    this.#folder = folder
    this.#hosts = new Hosts(folder)
    this.#members = ['pg1', 'pg2', 'pg3'].map((name) => this.#hosts.add(name))
    this.#proxy = this.#hosts.add('proxy')
    this.#socket = this.#proxy.path('socket')
  }

  /** Database URL for the platform. */
  get url(): string {
    return this.#urlOf('custody', 'custody')
  }

  /** The database hosts, and the platform's host, which must not be able to change anything. */
  get members(): readonly Host[] {
    return this.#members
  }
  get proxy(): Host {
    return this.#proxy
  }
  /** Password of Patroni's API. */
  get restapiPassword(): string {
    return this.#passwords.restapi
  }

  #urlOf(user: 'custody' | 'postgres', database: string): string {
    const password = user === 'custody' ? this.#passwords.custody : this.#passwords.superuser
    return `postgresql://${user}:${password}@/${database}?host=${encodeURIComponent(this.#socket)}`
  }

  #write(host: Host, name: string, replaced: Record<string, string>): string {
    const addresses = Object.fromEntries(
      this.#members.map(({ address }, at) => [`ADDRESS${at + 1}`, address]),
    )
    let text = readFileSync(new URL(name, FILES), 'utf8').replaceAll(/^ *#.*$/gm, '')
    const all = {
      ...addresses,
      ADDRESS: host.address,
      NAME: host.name,
      NETWORK: `${host.address}/24`,
      '/etc/custody/tls': host.path('tls'),
      ...replaced,
    }
    // Longer names come first, because ADDRESS is a prefix of ADDRESS1.
    for (const [from, to] of Object.entries(all).sort(([a], [b]) => b.length - a.length))
      text = text.replaceAll(from, to)
    writeFileSync(host.path(name), text, { mode: 0o600 })
    return host.path(name)
  }

  #makeCertificates(): void {
    const authority = join(this.#folder, 'authority')
    const hosts = this.#members.map(({ name, address }) => `${name}=${address}`)
    const made = spawnSync(
      'sh',
      [fileURLToPath(new URL('certificates.sh', FILES)), authority, ...hosts],
      { encoding: 'utf8' },
    )
    if (made.status !== 0) throw new Error(`certificates.sh: ${made.stderr}`)
    for (const host of [...this.#members, this.#proxy]) {
      mkdirSync(host.path('tls'), { recursive: true })
      copyFileSync(join(authority, 'ca.crt'), host.path('tls', 'ca.crt'))
      // The platform's host has only the certificate of the authority.
      if (host === this.#proxy) continue
      for (const kind of ['key', 'crt'])
        copyFileSync(join(authority, `${host.name}.${kind}`), host.path('tls', `host.${kind}`))
    }
  }

  async start(): Promise<void> {
    this.#makeCertificates()
    await Promise.all(this.#members.map((host) => this.#startEtcd(host)))
    await Promise.all(this.#members.map((host) => this.#startPatroni(host)))
    mkdirSync(this.#socket, { recursive: true })
    const file = this.#write(this.#proxy, 'haproxy.cfg', {
      BIND: `unix@${join(this.#socket, '.s.PGSQL.5432')} mode 600`,
    })
    await this.#proxy.start('haproxy', ['-f', file, '-db'], /WARNING|NOTICE/)
    await this.whole(START_MS)
    const admin = openDatabase(this.#urlOf('postgres', 'postgres'), {
      max: 1,
      onError: () => undefined,
    })
    try {
      for (const deadline = Date.now() + 30_000; ;) {
        try {
          await admin.query(`create role custody login password '${this.#passwords.custody}'`)
          break
        } catch (error) {
          if (Date.now() > deadline) throw error
          await sleep(500)
        }
      }
      await admin.query('create database custody owner custody')
    } finally {
      await admin.close()
    }
  }

  async #startEtcd(host: Host): Promise<void> {
    const file = this.#write(host, 'etcd.yml', { '/var/lib/etcd/custody': host.path('etcd') })
    await host.start(
      'etcd',
      ['--config-file', file],
      /ready to serve client requests|serving insecure client requests/,
    )
  }

  #environment(): Record<string, string> {
    const { restapi, superuser, replication } = this.#passwords
    return {
      PATRONI_RESTAPI_PASSWORD: restapi,
      PATRONI_SUPERUSER_PASSWORD: superuser,
      PATRONI_REPLICATION_PASSWORD: replication,
    }
  }

  async #startPatroni(host: Host): Promise<void> {
    const file = this.#write(host, 'patroni.yml', {
      '/var/lib/postgresql/custody.pgpass': host.path('pgpass'),
      '/var/lib/postgresql/custody': host.path('data'),
      '/usr/lib/postgresql/15/bin': binaries() as string,
    })
    const [unshare, ...as] = AS_NOBODY as [string, ...string[]]
    this.#patroni.set(
      host,
      await host.start(
        unshare,
        [...as, ...DIES_WITH_US, 'patroni', file],
        /INFO/,
        this.#environment(),
      ),
    )
  }

  async #request(host: Host, path: string): Promise<{ status: number; body: string }> {
    const words = [
      '-s',
      '-m',
      '2',
      '--cacert',
      this.#proxy.path('tls', 'ca.crt'),
      '-w',
      '\n%{http_code}',
    ]
    const { stdout } = await this.#proxy
      .run('curl', [...words, `https://${host.address}:8008${path}`])
      .catch(() => ({ stdout: '\n0' }))
    const end = stdout.lastIndexOf('\n')
    return { status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end) }
  }

  /** Returns the host that reports itself as primary. Reports of other hosts may be outdated. */
  async primary(): Promise<Host | null> {
    const answers = await Promise.all(
      this.#members.map(async (host) => ({ host, ...(await this.#request(host, '/primary')) })),
    )
    return answers.find(({ status }) => status === 200)?.host ?? null
  }

  /**
   * Returns whether the primary has two standbys, one of which confirms each commit and may be
   * promoted, according to both PostgreSQL and Patroni.
   */
  async #isWhole(): Promise<{ is: boolean; seen: unknown }> {
    const host = await this.primary()
    if (host === null) return { is: false, seen: 'there is no primary' }
    const { body } = await this.#request(host, '/cluster')
    const admin = openDatabase(this.#urlOf('postgres', 'postgres'), {
      max: 1,
      answerMs: 3000,
      onError: () => undefined,
    })
    try {
      const { members } = JSON.parse(body) as { members: Member[] }
      const standbys = await admin.query<{
        name: string
        state: string
        sync: string
        lag: string
      }>(
        `select application_name "name", state, sync_state sync,
          pg_current_wal_lsn() - replay_lsn lag from pg_stat_replication
         where current_setting('synchronous_standby_names') <> '*'`,
      )
      const roleOf = (name: string) => members.find((member) => member.name === name)?.role
      const is =
        standbys.length === 2 &&
        standbys.every(({ state, lag }) => state === 'streaming' && Number(lag) < LAG_MAX) &&
        standbys.filter(({ sync }) => sync === 'sync').length === 1 &&
        standbys.every(
          ({ name, sync }) => roleOf(name) === (sync === 'sync' ? 'sync_standby' : 'replica'),
        ) &&
        roleOf(host.name) === 'leader'
      return { is, seen: { members, standbys } }
    } catch (error) {
      return { is: false, seen: String(error) }
    } finally {
      await admin.close()
    }
  }

  /**
   * Resolves once there is a primary, a synchronous standby and a third host that follows, in two
   * checks some seconds apart.
   */
  async whole(timeoutMs: number): Promise<void> {
    let times = 0
    for (const deadline = Date.now() + timeoutMs; ; await sleep(1000)) {
      const { is, seen } = await this.#isWhole()
      times = is ? times + 1 : 0
      if (times === 2) return
      if (Date.now() > deadline)
        throw new Error(
          `the cluster is not whole within ${timeoutMs / 1000} s: ${JSON.stringify(seen)}\n${this.#hosts.lastLines()}`,
        )
    }
  }

  /**
   * Kills all processes of PostgreSQL, as the out-of-memory killer and systemd do. A backend that
   * outlives its server prevents the next start.
   */
  #killPostgres(host: Host): void {
    const server = Number(
      readFileSync(host.path('data', 'postmaster.pid'), 'utf8').split('\n', 1)[0],
    )
    const parentOf = (pid: number) =>
      Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
    const { stdout } = spawnSync('ip', ['netns', 'pids', host.space], { encoding: 'utf8' })
    const children = stdout
      .split('\n')
      .filter(Boolean)
      .map(Number)
      .filter((pid) => {
        try {
          return parentOf(pid) === server
        } catch {
          return false
        }
      })
    for (const pid of [server, ...children])
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        /* The process has ended. */
      }
  }

  #nft(host: Host, rules: string): void {
    const { status, stderr } = spawnSync('ip', ['netns', 'exec', host.space, 'nft', '-f', '-'], {
      input: rules,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`nft: ${stderr}`)
  }

  /**
   * Causes a failure at the primary.
   * @returns its name, and a function that repairs it
   */
  async strike(trouble: Trouble): Promise<{ name: string; mend(): Promise<void> }> {
    const host = await this.primary()
    if (!host) throw new Error(`there is no primary: ${this.#hosts.lastLines()}`)
    const { name } = host
    switch (trouble) {
      case 'PostgreSQL killed':
        this.#killPostgres(host)
        return { name, mend: async () => undefined }
      case 'Patroni and PostgreSQL killed':
        this.#patroni.get(host)?.kill('SIGKILL')
        this.#killPostgres(host)
        return { name, mend: () => this.#startPatroni(host) }
      case 'host gone':
        await host.cutPower()
        return {
          name,
          mend: async () => {
            await this.#startEtcd(host)
            await this.#startPatroni(host)
          },
        }
      case 'network silent':
        host.link('down')
        return { name, mend: async () => host.link('up') }
      case 'network reset':
        this.#nft(
          host,
          ['input', 'output']
            .map(
              (way) => `add table inet cut
add chain inet cut ${way} { type filter hook ${way} priority 0; }
add rule inet cut ${way} ${way === 'input' ? 'iifname' : 'oifname'} "eth0" meta l4proto tcp reject with tcp reset
`,
            )
            .join(''),
        )
        return { name, mend: async () => this.#nft(host, 'delete table inet cut\n') }
    }
  }

  lastLines(): string {
    return this.#hosts.lastLines()
  }

  remove(): Promise<void> {
    return this.#hosts.remove()
  }

  destroy(): void {
    this.#hosts.destroy()
  }
}
