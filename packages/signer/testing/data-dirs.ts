import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePorts } from '../../../testing/free-ports.ts'
import { loadConfig } from '../src/config.ts'
import { realEnvironment } from '../src/environment.ts'
import { openLog } from '../src/log.ts'
import { startNode } from '../src/node.ts'
import { nativeEngine, type Engine } from '../src/sessions/engine.ts'
import { setup } from '../src/setup.ts'
import { engineDouble } from './engine-double.ts'
import { copyOf, prepared } from './prepared.ts'

/**
 * Homes of three nodes. Their keys are generated once for all tests, because one key takes two
 * seconds of processor time.
 */
const KEYS = { secp256k1: 8, ed25519: 3 }
const SOURCES = [
  'packages/signer/src',
  'packages/chains/src',
  'packages/chains/data',
  'packages/threshold/native/threshold.node',
  'packages/key-encryption/src',
  'package-lock.json',
  'packages/signer/testing/data-dirs.ts',
  'packages/signer/testing/engine-double.ts',
]
/** Which engine the nodes of a test use. `double` needs nodes in the test's own process. */
export type EngineName = 'native' | 'double'
const ENGINES: Record<EngineName, Engine> = { native: nativeEngine, double: engineDouble }
const NODES = [1, 2, 3] as const

/** Returns the configuration of one node's home, as JSON. */
// oxlint-disable-next-line typescript/no-explicit-any -- each test changes what it likes
export type HomeConfig = any

export { freePorts }

export function editConfigs(parent: string, edit: (config: HomeConfig) => void): void {
  for (const node of NODES) {
    const file = join(parent, `node-${node}`, 'config.json')
    const config = JSON.parse(readFileSync(file, 'utf8')) as HomeConfig
    edit(config)
    writeFileSync(file, JSON.stringify(config))
  }
}

/**
 * Starts a node in its own process; `hear` receives its output. Resolves when the node is ready.
 */
export async function runNode(
  home: string,
  hear: (text: string) => void = () => {},
  env: NodeJS.ProcessEnv = {},
): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, '../src/main.ts'), '--home', home],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    },
  )
  let output = ''
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        hear(text)
        output += text
        if (/^signer \d ready https:\/\/127\.0\.0\.1:/m.test(output)) resolve()
      })
    }
    child.once('exit', (code) => {
      reject(new Error(`the node of ${home} ended with ${code}: ${output.slice(-500)}`))
    })
  })
  return child
}

/**
 * Runs a node in this process, for tests that neither kill a node nor inspect it from outside.
 * @param now the node's clock, in milliseconds since 1970
 * @param engine the engine that created the keys of the home
 * @returns a function that stops the node
 */
export async function nodeInProcess(
  home: string,
  hear: (text: string) => void = () => {},
  now: () => number = realEnvironment.now,
  engine: EngineName = 'native',
): Promise<() => Promise<void>> {
  const config = loadConfig(home)
  const exit = (code: number): never => {
    throw new Error(`the node of ${home} ended with ${code}`)
  }
  const { stop } = await startNode(
    config,
    { ...realEnvironment, now, exit },
    openLog(config.node, now, hear),
    process.env,
    ENGINES[engine],
  )
  return stop
}

/** Stops a node's process, which completes what it is doing. */
async function ended(node: ChildProcess): Promise<void> {
  const exit = new Promise((resolve) => {
    node.once('exit', resolve)
  })
  node.kill('SIGTERM')
  await exit
}

const keysOf = (home: string): Promise<Record<keyof typeof KEYS, number>> =>
  new Promise((resolve, reject) => {
    request(
      // No connection is kept that the node may close meanwhile.
      { socketPath: join(home, 'operator.sock'), method: 'POST', path: '/status', agent: false },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        response.on('end', () => {
          resolve((JSON.parse(text) as { pool: Record<keyof typeof KEYS, number> }).pool)
        })
      },
    )
      .on('error', reject)
      .end('{}')
  })

/** Creates the homes with the keys of an engine. */
async function make(folder: string, engine: EngineName): Promise<void> {
  const parent = mkdtempSync(join(tmpdir(), 'signer-'))
  const stops: (() => Promise<void>)[] = []
  try {
    await setup({ home: parent, ports: await freePorts(3), mode: 'local' })
    editConfigs(parent, (config) => {
      config.pool = KEYS
    })
    const homes = NODES.map((node) => join(parent, `node-${node}`))
    const run = (home: string) =>
      engine === 'native'
        ? runNode(home).then((node) => () => ended(node))
        : nodeInProcess(home, undefined, undefined, engine)
    stops.push(...(await Promise.all(homes.map(run))))
    const full = async () =>
      (await Promise.all(homes.map(keysOf))).every(
        (pool) => pool.secp256k1 === KEYS.secp256k1 && pool.ed25519 === KEYS.ed25519,
      )
    while (!(await full())) await sleep(100)
    await Promise.all(stops.splice(0).map((stop) => stop()))
    // Every copy gets its own ports, sockets, recovery keys and TLS keys.
    for (const home of homes) rmSync(join(home, 'config.json'))
    for (const name of ['platform/peers.json', ...NODES.map((node) => `recovery-${node}`)])
      rmSync(join(parent, name))
    // A certificate is valid from the day before its creation, and a run with another clock (`npm
    // run calendar`) may have created it.
    for (const owner of ['platform', ...NODES.map((node) => `node-${node}`)]) {
      for (const name of ['tls.key', 'tls.crt']) rmSync(join(parent, owner, name))
    }
    copyOf(parent, folder)
  } finally {
    await Promise.all(stops.map((stop) => stop()))
    rmSync(parent, { recursive: true, force: true })
  }
}

/**
 * Creates the homes in a process with the real clock: a node whose record was written in the future
 * would refuse to work in later runs.
 */
function makeWithRealClock(folder: string, engine: EngineName): void {
  const { LD_PRELOAD: _preload, FAKETIME: _time, FAKETIME_SHARED: _shared, ...env } = process.env
  const { status } = spawnSync(process.execPath, [import.meta.filename, folder, engine], {
    stdio: 'inherit',
    env,
  })
  if (status !== 0) throw new Error(`cannot create the homes of test nodes (${engine} engine)`)
}

/** Returns the folder with the homes and keys that tests copy, and creates it if necessary. */
export const prepareKeys = (engine: EngineName = 'native'): Promise<string> =>
  prepared(engine === 'native' ? 'homes' : `homes.${engine}`, SOURCES, async (folder) => {
    if (process.env['FAKETIME'] === undefined) await make(folder, engine)
    else makeWithRealClock(folder, engine)
  })

/**
 * Creates homes as `setup` does, in a folder that may exist. `prepared` keys: all tests share the
 * identities and a pool of keys, which is not refilled when it is empty. `own` keys: nothing is
 * shared with another test.
 */
export async function createDataDirs(
  parent: string,
  ports: readonly number[],
  keys: 'prepared' | 'own' = 'prepared',
  engine: EngineName = 'native',
): Promise<void> {
  if (keys === 'prepared') copyOf(await prepareKeys(engine), parent)
  await setup({ home: parent, ports, mode: 'local' })
  if (keys === 'prepared')
    editConfigs(parent, (config) => {
      config.pool = { secp256k1: 0, ed25519: 0 }
    })
}

// Without a folder it prepares the homes of both engines.
if (import.meta.main) {
  const [folder, engine = 'native'] = process.argv.slice(2)
  if (folder === undefined) {
    await prepareKeys('native')
    await prepareKeys('double')
  } else await make(folder, engine as EngineName)
}
