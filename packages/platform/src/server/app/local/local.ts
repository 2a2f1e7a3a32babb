import { hasLocalChains, type NetworkMode } from '@custody/chains/mode'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino, type Logger } from 'pino'
import { signersFolder } from '../../../core/data-dir.ts'
import type { NetworkEndpoints } from '../../../core/settings/configuration.ts'
import { Child } from './child.ts'
import { freePorts } from './free-ports.ts'

const SIGNER = fileURLToPath(new URL('../../../../../signer/src', import.meta.url))
const DEVNET = fileURLToPath(new URL('../../../../../devnet/src/main.ts', import.meta.url))

/**
 * Options of these child processes. They run for a long time and allocate little, so a small young
 * generation reduces the memory of an idle platform. The compile cache is loaded before their first
 * module, which is TypeScript, because loading the type stripper alone takes a tenth of a second.
 */
const NODE_ARGS = [
  '--max-semi-space-size=2',
  '--import',
  new URL('../../../../../../scripts/compile-cache.mjs', import.meta.url).href,
]

/**
 * Ports of the processes on this machine, chosen once per data folder so that URLs stay the same.
 */
interface Ports {
  signers: number[]
  devnet: number
}

async function portsOf(home: string): Promise<Ports> {
  const file = join(home, 'ports.json')
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Ports
  const [devnet, ...signers] = (await freePorts(4)) as [number, ...number[]]
  const ports: Ports = { signers, devnet }
  writeFileSync(file, JSON.stringify(ports), { mode: 0o600 })
  return ports
}

const platformIdentity = (home: string) => join(signersFolder(home), 'platform')

const nodesOf = (home: string, log: Logger): Child[] =>
  [1, 2, 3].map(
    (node) =>
      new Child(
        {
          name: `signer-${node}`,
          env: tracingSettings(),
          nodeArgs: NODE_ARGS,
          script: join(SIGNER, 'main.ts'),
          args: ['--home', join(signersFolder(home), `node-${node}`)],
          logFile: join(home, 'logs', `signer-${node}.log`),
          ready: /^signer \d+ ready (\S+)$/m,
        },
        log,
      ),
  )

/**
 * Runs a function while the three signer nodes of a data folder run, and no other process of it.
 */
export async function withNodes<T>(home: string, work: () => Promise<T>): Promise<T> {
  mkdirSync(join(home, 'logs'), { recursive: true, mode: 0o700 })
  const nodes = nodesOf(home, pino({ level: 'silent' }))
  try {
    await Promise.all(nodes.map((node) => node.start()))
    return await work()
  } finally {
    await Promise.all(nodes.map((node) => node.stop()))
  }
}

/** Servers that a platform has started itself, in addition to the database. */
export interface LocalServers {
  /** Base URL of the local chains; null in a rehearsal, which has none. */
  devnetUrl: string | null
  /**
   * Resolves once all of them have reported that they are ready; rejects if one does not become
   * ready.
   */
  ready: Promise<void>
  stop(): Promise<void>
}

/**
 * Starts three signer nodes, and in the mode `local` the local chains; sets up the nodes if there are
 * none. Three nodes under one user are not secure custody, so they never hold keys of real coins.
 */
export async function startLocal(
  home: string,
  network: NetworkMode,
  log: Logger,
): Promise<LocalServers> {
  const ports = await portsOf(home)
  const logs = join(home, 'logs')
  mkdirSync(logs, { recursive: true, mode: 0o700 })
  if (!existsSync(join(platformIdentity(home), 'peers.json'))) {
    const setup = spawnSync(
      process.execPath,
      [
        join(SIGNER, 'setup.ts'),
        '--home',
        signersFolder(home),
        '--ports',
        ports.signers.join(','),
        '--mode',
        network,
      ],
      { encoding: 'utf8' },
    )
    if (setup.status !== 0)
      throw new Error(
        `the signer nodes could not be set up: ${(setup.stderr || setup.stdout).trim().slice(-800)}`,
      )
  }
  // The chains take longest to start, so they are first.
  const children = [
    ...(hasLocalChains(network) ? [devnetOf(home, ports.devnet, log)] : []),
    ...nodesOf(home, log),
  ]
  const ready = Promise.all(children.map((child) => child.start())).then(() => undefined)
  // Callers that wait for `ready` receive the error; a start that fails earlier does not wait for
  // it.
  ready.catch(() => undefined)
  return {
    devnetUrl: hasLocalChains(network) ? `http://127.0.0.1:${ports.devnet}` : null,
    ready,
    stop: async () => void (await Promise.all(children.map((child) => child.stop()))),
  }
}

const devnetOf = (home: string, port: number, log: Logger): Child =>
  new Child(
    {
      // The local CoinGecko emulator responds to the ids that the platform will request.
      env: { CUSTODY_COINGECKO_IDS: process.env['CUSTODY_COINGECKO_IDS'] ?? '' },
      name: 'devnet',
      nodeArgs: NODE_ARGS,
      script: DEVNET,
      args: [
        '--home',
        join(home, 'devnet'),
        '--port',
        String(port),
        '--pace',
        process.env['CUSTODY_LOCAL_PACE'] || '1',
      ],
      logFile: join(home, 'logs', 'devnet.log'),
      ready: /^devnet ready (\S+)$/m,
    },
    log,
  )

/** Returns the tracing settings for a child process, except the service name, which is its own. */
function tracingSettings(): Record<string, string> {
  const isOurs = (name: string) => name.startsWith('OTEL_') && name !== 'OTEL_SERVICE_NAME'
  return Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      isOurs(name) && value ? [[name, value]] : [],
    ),
  )
}

/** Returns the RPC endpoints of the local chains. */
export function localEndpoints(
  devnetUrl: string,
  networks: readonly { code: string }[],
): Record<string, NetworkEndpoints> {
  return Object.fromEntries(
    networks.map(({ code }) => [
      code,
      { endpoints: [{ url: `${devnetUrl}/${code.toLowerCase()}` }], quorum: 1 },
    ]),
  )
}

export async function devnetUrlOf(home: string): Promise<string> {
  return `http://127.0.0.1:${(await portsOf(home)).devnet}`
}

/**
 * Like {@link devnetUrlOf}, but returns null if no ports were chosen for the data folder because it
 * was never started.
 */
export function knownDevnetUrl(home: string): string | null {
  const file = join(home, 'ports.json')
  return existsSync(file)
    ? `http://127.0.0.1:${(JSON.parse(readFileSync(file, 'utf8')) as Ports).devnet}`
    : null
}

/** Returns a function that sends a command to the control API of the local chains. */
export function devnetControl(
  url: string,
): (command: Record<string, unknown>) => Promise<Record<string, unknown>> {
  return async (command) => {
    const response = await fetch(`${url}/control`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(command),
      signal: AbortSignal.timeout(60_000),
    })
    const body = (await response.json()) as Record<string, unknown>
    if (!response.ok)
      throw new Error(String(body['error'] ?? `the local chains returned ${response.status}`))
    return body
  }
}
