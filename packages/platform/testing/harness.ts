import type { ApiRole } from '@custody/request-auth/roles'
import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { assertMatchesDocument } from './openapi-assertions.ts'
import {
  JsonNumber,
  parseJson,
  requestHeaders,
  signRequest,
  type SignOptions,
} from '@custody/request-auth'
import type { Devnet } from '../../devnet/src/devnet.ts'
import { freePorts, createDataDirs, type nodeInProcess } from '../../signer/testing/data-dirs.ts'
import { callerKey } from '../../signer/testing/prepared.ts'
import { signersFolder } from '../src/core/data-dir.ts'
import { callPlatform } from '../src/server/operator/connect.ts'
import { openDatabase, type Database } from '../src/core/database/pool.ts'
import { createApiUserEverywhere } from '../src/server/operator/enrol.ts'
import type { InProcessPlatform } from './in-process-platform.ts'
import { exitAfterTests, keepAlive } from './exit-after-tests.ts'
import { prepareDatabase } from './prepared-database.ts'
import { asAdmin, createTestDatabase, type ServerMode, type TestDatabase } from './test-database.ts'
import { wrongEvents } from './event-assertions.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const PLATFORM = fileURLToPath(new URL('../', import.meta.url))
const MAIN = join('src', 'main.ts')
const CLI = join('bin', 'custody.mjs')

/** RSA key pair that all users of the tests share. */
const { privateKey, publicKey } = await callerKey()
export const PUBLIC_KEY = publicKey
export const PRIVATE_KEY = privateKey

export interface User {
  apiKey: string
  base: string
  workspace: string
}
export interface Answer<T = Record<string, unknown>> {
  status: number
  headers: Headers
  body: T
  text: string
}

/** Factor by which blocks come faster than on an interactive platform. */
const PACE = 10
/** Time limit in milliseconds for reaching a checkpoint. */
const DEATH_MS = 120_000

/**
 * Initial state of the first start, and where it runs.
 *
 * - `in-process`: tables and keys exist, and everything but the database server runs in this process.
 *   The server is that of the run, unless the test has its own (see {@link ServerMode}).
 * - `prepared`: tables and keys exist, and the platform starts its own processes, as `npm start`
 *   does.
 * - `empty-home`: like `prepared`, but without tables and keys, which the platform creates.
 */
type SetupMode = 'in-process' | 'prepared' | 'empty-home'

/** All platforms that this process has created. */
const platforms: TestPlatform[] = []
/** Home directories that still exist. */
const homes = new Set<string>()

/** A platform with its own home directory. */
export class TestPlatform {
  readonly home: string
  /** Folder of the platform's package: this one, or that of a modified copy. */
  readonly package: string
  base = ''
  /**
   * Time before which events were emitted by an earlier version, with the types of its registry.
   */
  eventsFrom = new Date(0)
  readonly #mode: SetupMode
  readonly #server: ServerMode
  /** Database on the shared server. */
  #created: TestDatabase | null = null
  /**
   * Clock of everything that runs in this process and of the requests that the test signs, in
   * milliseconds since 1970.
   */
  readonly clock: () => number
  /** Functions that stop each node in this process, by node number. */
  readonly #nodes = new Map<number, () => Promise<void>>()
  #chains: Devnet | null = null
  #nodeHere: typeof nodeInProcess | null = null
  #here: InProcessPlatform | null = null
  #database: Database | null = null
  process: ChildProcess | null = null
  output = ''
  /** Standard output of a separate process. */
  printed = ''

  constructor({
    home,
    folder = PLATFORM,
    mode = 'in-process',
    // A modified copy of the package may have other tables, and a given home contains a database.
    server = mode === 'in-process' && home === undefined && folder === PLATFORM ? 'shared' : 'own',
    clock = Date.now,
  }: {
    home?: string
    folder?: string
    mode?: SetupMode
    server?: ServerMode
    clock?: () => number
  } = {}) {
    // A separate process uses the system clock, but the test would sign its requests with another
    // one.
    if (mode !== 'in-process' && clock !== Date.now)
      throw new Error('a clock reaches only a platform that runs in this process')
    this.clock = clock
    this.home = home ?? mkdtempSync(join(tmpdir(), 'custody-test-'))
    this.package = folder
    this.#mode = mode
    this.#server = server
    platforms.push(this)
    homes.add(this.home)
    keepAlive()
  }

  async #prepare(): Promise<void> {
    const [devnet, ...signers] = await freePorts(4)
    await Promise.all([
      createDataDirs(signersFolder(this.home), signers),
      this.#server === 'own' ? prepareDatabase(this.home) : null,
    ])
    writeFileSync(join(this.home, 'ports.json'), JSON.stringify({ signers, devnet }), {
      mode: 0o600,
    })
  }

  /** Starts the nodes and the chains of this home in this process. */
  async #startParts(): Promise<void> {
    const { devnet } = JSON.parse(readFileSync(join(this.home, 'ports.json'), 'utf8')) as {
      devnet: number
    }
    // Imports a module only when it is needed, because most modules are used only to run a
    // platform. A modified copy of the tree imports its own modules.
    const ofTree = async <T>(path: string): Promise<T> =>
      (await import(pathToFileURL(join(this.package, '..', path)).href)) as T
    const { InProcessPlatform } = await ofTree<typeof import('./in-process-platform.ts')>(
      'platform/testing/in-process-platform.ts',
    )
    const { Devnet } =
      await ofTree<typeof import('../../devnet/src/devnet.ts')>('devnet/src/devnet.ts')
    const { nodeInProcess } = await ofTree<typeof import('../../signer/testing/data-dirs.ts')>(
      'signer/testing/data-dirs.ts',
    )
    this.#nodeHere = nodeInProcess
    const chains = await Devnet.start(join(this.home, 'devnet'), devnet, {
      pace: PACE,
      clock: this.clock,
    })
    this.#chains = chains
    await Promise.all([1, 2, 3].map((node) => this.#startNode(node)))
    if (this.#server === 'shared') this.#created = await createTestDatabase()
    this.#here = new InProcessPlatform(
      this.home,
      chains,
      (text) => (this.output += text),
      this.clock,
      this.#created,
    )
  }

  async #startNode(node: number): Promise<void> {
    if (!this.#nodeHere) throw new Error('no nodes run here')
    this.#nodes.set(
      node,
      await this.#nodeHere(join(signersFolder(this.home), `node-${node}`), undefined, this.clock),
    )
  }

  async start(env: Record<string, string> = {}): Promise<void> {
    this.output = ''
    // The local chains run in this process and get the environment variables of the start, as they
    // would in a separate process.
    if (this.#mode === 'in-process') Object.assign(process.env, env)
    if (this.#mode !== 'empty-home' && !existsSync(join(this.home, 'ports.json')))
      await this.#prepare()
    if (this.#mode === 'in-process' && !this.#here) await this.#startParts()
    if (this.#here) {
      this.base = await this.#here.start(env)
      return
    }
    const child = spawn(process.execPath, [join(this.package, MAIN)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        CUSTODY_HOME: this.home,
        PORT: '0',
        CUSTODY_LOG_LEVEL: 'warn',
        CUSTODY_LOCAL_PACE: String(PACE),
        ...env,
      },
    })
    this.process = child
    child.stderr?.on('data', (chunk: Buffer) => (this.output += chunk.toString()))
    this.base = await new Promise<string>((resolve, reject) => {
      this.printed = ''
      child.stdout?.on('data', (chunk: Buffer) => {
        this.printed += chunk.toString()
        const match = /^ready (http:\S+)/m.exec(this.printed)
        if (match) resolve(match[1] as string)
      })
      child.once('exit', (code, signal) =>
        reject(
          new Error(`the platform ended (${String(signal ?? code)}): ${this.output.slice(-2000)}`),
        ),
      )
    })
  }

  /** Starts another API process with the same home and database. */
  async startApi(): Promise<TestPlatform> {
    const other = new TestPlatform({ home: this.home, folder: this.package, mode: 'prepared' })
    await other.start({ CUSTODY_ROLE: 'api' })
    return other
  }

  /** Resolves when the process has ended for any reason. */
  async ended(): Promise<void> {
    const child = this.process
    if (child && child.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => child.once('exit', resolve))
  }

  async kill(): Promise<void> {
    if (this.#here) return this.#here.kill()
    this.process?.kill('SIGKILL')
    await this.ended()
  }

  async stop(): Promise<number | null> {
    if (this.#here) return this.#here.stop().then(() => 0)
    this.process?.kill('SIGTERM')
    await this.ended()
    return this.process?.exitCode ?? null
  }

  /**
   * Ends all processes and removes the home directory. Checks the events of a platform in this
   * process against the registry of events.
   */
  async remove(): Promise<void> {
    const wrong = this.#here ? await wrongEvents(this.database, this.eventsFrom) : []
    await this.#database?.close()
    if (this.process && this.process.exitCode === null && this.process.signalCode === null)
      await this.stop()
    await this.#here?.remove()
    await this.#created?.remove()
    await Promise.all([...this.#nodes.values()].map((stop) => stop()))
    this.#chains?.close()
    const pidFile = join(this.home, 'postgres', 'data', 'postmaster.pid')
    if (existsSync(pidFile)) {
      try {
        process.kill(Number(readFileSync(pidFile, 'utf8').split('\n', 1)[0]), 'SIGQUIT')
        await sleep(300)
      } catch {
        /* The process has ended. */
      }
    }
    rmSync(this.home, { recursive: true, force: true })
    homes.delete(this.home)
    if (homes.size === 0) exitAfterTests(wrong.length > 0)
    if (wrong.length > 0)
      throw new Error(`events that are not what the registry says:\n${wrong.join('\n')}`)
  }

  async user(
    workspace: string,
    options: { subAccount?: string; role?: ApiRole; rateLimit?: number } = {},
  ): Promise<User> {
    const { apiKey } = await createApiUserEverywhere(
      this.home,
      {
        workspace,
        subAccount: options.subAccount ?? 'main',
        role: options.role ?? 'full',
        publicKeyPem: PUBLIC_KEY,
      },
      options.rateLimit ?? 100_000,
    )
    return { apiKey, base: this.base, workspace }
  }

  async operator(
    command: string,
    input: Record<string, unknown> = {},
  ): Promise<Record<string, unknown>> {
    return callPlatform(this.home, command, input)
  }

  async fund(asset: string, address: string, amount: string): Promise<string> {
    return String(
      (await this.operator('devnet', { command: 'fund', asset, address, amount, tag: null }))[
        'hash'
      ],
    )
  }

  /**
   * Kills a platform in this process at a commit that `work` causes, and starts a new one.
   * Responses may be lost with it.
   */
  async dieAt(checkpoint: string, work: () => Promise<unknown>): Promise<void> {
    const here = this.#here as InProcessPlatform
    const ended = here.ended.then(() => true)
    here.dieAt = checkpoint
    const answer = await work().catch((error: unknown) => String(error))
    const patience = new AbortController()
    const died = await Promise.race([ended, later(DEATH_MS, false, { signal: patience.signal })])
    patience.abort()
    here.dieAt = null
    if (!died) {
      const latest = await this.database.query(
        `select kind, state, attempts, last_error, next_run_at, lease_until from transactions
          order by created_at desc limit 5`,
      )
      throw new Error(
        `${checkpoint} was never reached; what was to lead there answered ${inspect(answer)}; ${inspect(latest)}\n${this.output.slice(-2000)}`,
      )
    }
    await this.start()
  }

  /** Accepts the block that a chain has instead of a final one, once the platform notices it. */
  async acceptReorg(network: string): Promise<void> {
    type Facts = { contradicted: { network: string; height: number; other: string }[] }
    await waitFor('a final block is contradicted', async () => {
      const { contradicted } = (await this.operator('doctor', {})) as unknown as Facts
      const found = contradicted.find((each) => each.network === network)
      if (!found) return false
      const { height, other } = found
      await this.cli('chain', 'accept-reorg', network, String(height), other)
      return true
    })
  }

  /** Runs a function while a chain produces blocks only by command. */
  async halted<T>(network: string, run: () => Promise<T>): Promise<T> {
    const halt = (halted: boolean) => this.operator('devnet', { command: 'halt', network, halted })
    await halt(true)
    try {
      return await run()
    } finally {
      await halt(false)
    }
  }

  /**
   * Produces a block on a halted chain whenever a transaction is waiting, until a condition holds.
   * The transaction that fulfils the condition is in the last block.
   */
  async mineUntil(network: string, what: string, holds: () => Promise<unknown>): Promise<void> {
    await waitFor(what, async () => {
      if (await holds()) return true
      const { networks } = (await this.operator('devnet', { command: 'info' })) as {
        networks: Record<string, { waiting: number | null }>
      }
      if ((networks[network]?.waiting ?? 0) > 0)
        await this.operator('devnet', { command: 'mine', network, blocks: 1 })
      return false
    })
  }

  /** Runs a function while these nodes of this process are stopped. */
  async nodesDown<T>(nodes: readonly number[], run: () => Promise<T>): Promise<T> {
    await Promise.all(nodes.map((node) => this.#nodes.get(node)?.()))
    try {
      return await run()
    } finally {
      await Promise.all(nodes.map((node) => this.#startNode(node)))
    }
  }

  /**
   * Runs a function while none of the three nodes answers. The nodes answer the pending requests
   * afterwards, unless the requests have timed out by then.
   */
  async withoutNodes<T>(run: () => Promise<T>): Promise<T> {
    return (this.#here as InProcessPlatform).withoutNodes(run)
  }

  /** Runs a function while the platform is paused as by SIGSTOP: it sends and receives nothing. */
  async asleep<T>(run: () => Promise<T>): Promise<T> {
    return (this.#here as InProcessPlatform).asleep(run)
  }

  /**
   * The platform's database, for data that its API does not return. The connection is the
   * superuser's; the platform itself uses that of its own role.
   */
  get database(): Database {
    const { database_url: url } = JSON.parse(
      readFileSync(join(this.home, 'runtime.json'), 'utf8'),
    ) as { database_url: string }
    this.#database ??= openDatabase(asAdmin(url), { max: 1, now: this.clock })
    return this.#database
  }

  /**
   * Resolves once a transaction, or the transaction it waits for, has been attempted this number of
   * times in its state, or has ended.
   */
  async tried(id: string, times = 2): Promise<void> {
    await waitFor(`${times} tries of ${id}`, () =>
      this.database.one(
        `select 1 from transactions where (id = $1 or parent_id = $1)
          and (status <> 'pending' or attempts >= $2 and lease_token is null)`,
        [id, times],
      ),
    )
  }

  /** Resolves once no work is due. */
  async atRest(): Promise<void> {
    const due = `select 1 from transactions where status = 'pending'
      and (lease_token is not null or next_run_at <= $1) limit 1`
    await waitFor(
      'rest',
      async () => (await this.database.one(due, [this.database.now()])) === undefined,
    )
  }

  /** Runs the operator's command as an operator does. */
  cli(...args: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
    const child = spawn(process.execPath, [join(this.package, CLI), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, CUSTODY_HOME: this.home },
    })
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => (said[name] += text))
    return new Promise((resolve) => child.once('close', (status) => resolve({ status, ...said })))
  }

  writePublicKey(): string {
    const file = join(this.home, 'test-key.pub')
    writeFileSync(file, PUBLIC_KEY)
    return file
  }

  /**
   * Returns the process id of a child by a pattern of its command line, in which HOME is the home
   * directory. Linux only.
   */
  childPid(word: string): number {
    const { stdout } = spawnSync('pgrep', ['-f', word.replace('HOME', this.home)], {
      encoding: 'utf8',
    })
    const pid = Number(stdout.trim().split('\n')[0])
    if (!Number.isInteger(pid) || pid < 2) throw new Error(`no process matches ${word}`)
    return pid
  }
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** Converts every number to its exact text. */
export function plain(value: unknown): unknown {
  if (value instanceof JsonNumber) return value.text
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
  return value
}

/**
 * Sends a signed request.
 * @param sign changes how the request is signed
 * @param headers additional headers
 */
export async function call<T = Record<string, unknown>>(
  user: User | null,
  method: string,
  path: string,
  body?: unknown,
  options: { base?: string; sign?: Partial<SignOptions>; headers?: Record<string, string> } = {},
): Promise<Answer<T>> {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  const now = Math.floor(
    (platforms.find(({ base }) => base === user?.base)?.clock() ?? Date.now()) / 1000,
  )
  const signed = user
    ? requestHeaders(
        await signRequest({
          apiKey: user.apiKey,
          privateKey: PRIVATE_KEY,
          method,
          uri: path,
          body: text,
          now,
          ...options.sign,
        }),
        user.apiKey,
      )
    : {}
  const headers: Record<string, string> = {
    ...signed,
    ...(text === '' ? {} : { 'content-type': 'application/json' }),
    ...options.headers,
  }
  const response = await fetch(`${options.base ?? user?.base ?? ''}${path}`, {
    method,
    headers,
    ...(text === '' ? {} : { body: text }),
  })
  const answer = await response.text()
  assertMatchesDocument({
    method,
    path,
    status: response.status,
    headers: response.headers,
    text: answer,
  })
  let parsed: unknown = answer
  try {
    parsed = plain(parseJson(answer))
  } catch {
    /* The response is not JSON. */
  }
  return { status: response.status, headers: response.headers, body: parsed as T, text: answer }
}

export interface Transfer {
  id: string
  status: string
  sub_status: string
  hash: string | null
  fee: string
  amount: string
  failure_reason: string | null
  waiting: { code: string } | null
  [field: string]: unknown
}

export const transferBody = (
  asset: string,
  amount: string,
  to: string,
  more: Record<string, unknown> = {},
) =>
  `{"asset":"${asset}","amount":${amount},"destination_address":"${to}","destination_type":"EXTERNAL","source_type":"INTERNAL"${Object.entries(
    more,
  )
    .map(([key, value]) => `,"${key}":${JSON.stringify(value)}`)
    .join('')}}`

/**
 * Repeats a request while its network is unreachable, as clients are advised to do. Local chains
 * start slowly when many start concurrently.
 */
async function onceReached<T>(user: User, path: string, body: unknown): Promise<T> {
  return waitFor(`${path} ${JSON.stringify(body)}`, async () => {
    const answer = await call<T & { code?: string }>(user, 'POST', path, body)
    if (['NETWORK_UNAVAILABLE', 'KEY_PENDING'].includes(answer.body.code ?? '')) return null
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.body
  })
}

/** Creates a wallet with coins, and returns its first address. */
export async function fundedWallet(
  platform: TestPlatform,
  user: User,
  asset: string,
  amount: string,
): Promise<string> {
  await onceReached(user, '/dac/v1/create-wallet', { asset })
  const { address } = await onceReached<{ address: string }>(user, '/dac/v1/address', { asset })
  await platform.fund(asset, address, amount)
  await waitFor(`${asset} deposit`, async () => (await balance(user, asset)).balance !== '0')
  return address
}

export async function balance(
  user: User,
  asset: string,
): Promise<{ balance: string; omnibus_balance: string }> {
  const answer = await call<{ balance: string; omnibus_balance: string }[]>(
    user,
    'GET',
    `/dac/v1/wallets?asset=${asset}`,
  )
  const [first] = answer.body
  if (answer.status !== 200 || !first) throw new Error(answer.text)
  return first
}

/**
 * Returns a transfer once it has ended. It polls the database, because a signed request costs ten
 * times as much.
 */
export const terminal = (user: User, id: string) =>
  waitFor(
    `transfer ${id}`,
    async () => {
      const platform = platforms.find(({ base }) => base === user.base)
      if (
        platform &&
        (await platform.database.one(
          `select 1 from transactions where id = $1 and status = 'pending'`,
          [id],
        ))
      )
        return null
      const { body } = await call<Transfer>(user, 'GET', `/dac/v1/transaction/${id}`)
      return body.status === 'confirmed' || body.status === 'failed' ? body : null
    },
    { pauseMsMax: 150 },
  )

/**
 * Waits until a transfer has ended and asserts that it is confirmed. A failure prints the status,
 * the failure reason, and the last errors of the transfer and of its fuel, which contain the nodes'
 * messages.
 */
export async function assertConfirmed(user: User, id: string): Promise<Transfer> {
  const transfer = await terminal(user, id)
  if (transfer.status === 'confirmed') return transfer
  const platform = platforms.find(({ base }) => base === user.base)
  const rows = await platform?.database.query(
    'select kind, state, attempts, last_error from transactions where id = $1 or parent_id = $1',
    [id],
  )
  const { status, sub_status: subStatus, failure_reason: reason } = transfer
  return assert.fail(
    `transfer ${id} is ${status} (${subStatus}), not confirmed: ${reason ?? 'no failure reason'}\n${inspect(rows)}`,
  )
}

/** Sends a JSON-RPC request to a local chain, as an outside observer. */
export async function rpc<T>(
  platform: TestPlatform,
  network: string,
  method: string,
  params: unknown[],
): Promise<T> {
  const { devnet } = JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as {
    devnet: number
  }
  const response = await fetch(`http://127.0.0.1:${devnet}/${network.toLowerCase()}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const { result, error } = (await response.json()) as {
    result: T
    error?: { message: string } | null
  }
  if (error) throw new Error(error.message)
  return result
}
