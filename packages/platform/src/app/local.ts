import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino, type Logger } from 'pino'
import type { Endpoint } from '../settings/configuration.ts'
import { Child } from './child.ts'

const SIGNER = fileURLToPath(new URL('../../../signer/src', import.meta.url))
const DEVNET = fileURLToPath(new URL('../../../devnet/src/main.ts', import.meta.url))

/** These processes live long and make little garbage: a small young generation keeps an idle platform light. */
const SMALL = ['--max-semi-space-size=2']

/** Ports of the processes on this machine, chosen once per home so that URLs stay the same. */
interface Ports { signers: number[]; devnet: number }

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

async function portsOf(home: string): Promise<Ports> {
  const file = join(home, 'ports.json')
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Ports
  const ports = { signers: [await freePort(), await freePort(), await freePort()], devnet: await freePort() }
  writeFileSync(file, JSON.stringify(ports), { mode: 0o600 })
  return ports
}

export const signersFolder = (home: string) => join(home, 'signers')
const platformIdentity = (home: string) => join(signersFolder(home), 'platform')
/** Where the platform's client key and the nodes' addresses are: CUSTODY_SIGNERS, else in the home. */
export const identityFolder = (home: string): string => process.env['CUSTODY_SIGNERS'] || platformIdentity(home)

const nodesOf = (home: string, log: Logger): Child[] => [1, 2, 3].map((node) => new Child({
  name: `signer-${node}`, env: tracingSettings(), nodeArgs: SMALL, script: join(SIGNER, 'main.ts'),
  args: ['--home', join(signersFolder(home), `node-${node}`)],
  logFile: join(home, 'logs', `signer-${node}.log`), ready: /^signer \d+ ready (\S+)$/m,
}, log))

/** Runs something while the three nodes of a home run, and nothing else of it. */
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

/** Starts three signer nodes and the local chains. `local` only: three nodes under one user are not custody. */
export async function startLocal(home: string, log: Logger): Promise<{ children: Child[]; devnetUrl: string }> {
  const ports = await portsOf(home)
  const logs = join(home, 'logs')
  mkdirSync(logs, { recursive: true, mode: 0o700 })
  if (!existsSync(join(platformIdentity(home), 'peers.json'))) {
    const setup = spawnSync(
      process.execPath, [join(SIGNER, 'setup.ts'), '--home', signersFolder(home), '--ports', ports.signers.join(','), '--mode', 'local'],
      { encoding: 'utf8' }
    )
    if (setup.status !== 0) throw new Error(`the signer nodes could not be set up: ${(setup.stderr || setup.stdout).trim().slice(-800)}`)
  }
  const signers = nodesOf(home, log)
  const devnet = new Child({
    // The local CoinGecko answers to the ids that the platform will ask for.
    env: { CUSTODY_COINGECKO_IDS: process.env['CUSTODY_COINGECKO_IDS'] ?? '' },
    name: 'devnet', nodeArgs: SMALL, script: DEVNET,
    args: ['--home', join(home, 'devnet'), '--port', String(ports.devnet), '--pace', process.env['CUSTODY_LOCAL_PACE'] || '1'],
    logFile: join(logs, 'devnet.log'), ready: /^devnet ready (\S+)$/m,
  }, log)
  const children = [...signers, devnet]
  const started = await Promise.allSettled(children.map((child) => child.start()))
  const failed = started.find((each) => each.status === 'rejected')
  if (failed) {
    await Promise.all(children.map((child) => child.stop()))
    throw failed.reason
  }
  return { children, devnetUrl: `http://127.0.0.1:${ports.devnet}` }
}

/** Where traces go to, for a child; its own name there is its own. */
function tracingSettings(): Record<string, string> {
  const isOurs = (name: string) => name.startsWith('OTEL_') && name !== 'OTEL_SERVICE_NAME'
  return Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (isOurs(name) && value ? [[name, value]] : [])))
}

/** Where the local chains' RPC is. */
export function localEndpoints(devnetUrl: string, networks: readonly { code: string }[]): Record<string, Endpoint> {
  return Object.fromEntries(networks.map(({ code }) => [code, { url: `${devnetUrl}/${code.toLowerCase()}` }]))
}

export async function devnetUrlOf(home: string): Promise<string> {
  return `http://127.0.0.1:${(await portsOf(home)).devnet}`
}

/** Speaks to the local chains' control face. */
export function devnetControl(url: string): (command: Record<string, unknown>) => Promise<Record<string, unknown>> {
  return async (command) => {
    const response = await fetch(`${url}/control`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(command), signal: AbortSignal.timeout(60_000),
    })
    const body = await response.json() as Record<string, unknown>
    if (!response.ok) throw new Error(String(body['error'] ?? `the local chains answered ${response.status}`))
    return body
  }
}
