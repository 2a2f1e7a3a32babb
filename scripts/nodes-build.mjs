// Builds the real nodes with which tests compare the local chains, and keeps them in the user's
// cache. Nothing else builds them, and tests without them are skipped.
//   npm run nodes:build                 builds geth (5 to 10 minutes) and bitcoind (20 to 50 minutes)
//   npm run nodes:build -- NAME…        builds some of them
//   npm run nodes:build -- --release    builds what a release needs: bitcoind only where cmake, Boost
//                                       and libevent are installed
//   npm run nodes:build -- --list       prints versions and paths, and builds nothing
//
// A node that exists is not built again. litecoind is the distribution's package. Folder of the
// builds: CUSTODY_NODES_CACHE, or custody/nodes in $XDG_CACHE_HOME or ~/.cache. Another build is used
// if GETH, BITCOIND or LITECOIND is its path.
import { spawn, spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
const { builtPath, findNode, nodesCache, REAL_NODES } = await import('../testing/real-nodes.ts')

const GETH_MODULE = 'github.com/ethereum/go-ethereum/cmd/geth'
/** The crate that contains the complete source of Bitcoin Core. */
const CRATE = 'libbitcoinkernel-sys'
const BITCOIND_OPTIONS = [
  'ENABLE_WALLET=OFF',
  'ENABLE_IPC=OFF',
  'WITH_EMBEDDED_ASMAP=OFF',
  'BUILD_TESTS=OFF',
  'CMAKE_BUILD_TYPE=Release',
  // Optimizing further would double the time of the build.
  'CMAKE_CXX_FLAGS_RELEASE=-O1',
]

class BuildError extends Error {}

const answers = (command, ...words) => spawnSync(command, words, { stdio: 'ignore' }).status === 0
/** Returns whether the C++ compiler finds a header. */
const hasHeader = (header) =>
  spawnSync('c++', ['-E', '-x', 'c++', '-'], {
    input: `#include <${header}>\n`,
    stdio: ['pipe', 'ignore', 'ignore'],
  }).status === 0

/** What a build needs: the name, a check, and how to install it. */
const REQUIREMENTS = {
  geth: [
    [
      'Go',
      () => answers('go', 'version'),
      'apt-get install golang-go, or https://go.dev/doc/install',
    ],
  ],
  bitcoind: [
    ['cargo', () => answers('cargo', '--version'), 'https://rustup.rs'],
    ['cmake', () => answers('cmake', '--version'), 'apt-get install cmake'],
    ['a C++ compiler', () => answers('c++', '--version'), 'apt-get install g++'],
    ['Boost', () => hasHeader('boost/version.hpp'), 'apt-get install libboost-dev'],
    ['libevent', () => hasHeader('event2/event.h'), 'apt-get install libevent-dev'],
  ],
}
const BUILDS = { geth: buildGeth, bitcoind: buildBitcoind }

const missingFor = (name) => (REQUIREMENTS[name] ?? []).filter(([, isThere]) => !isThere())

let child = null
let partial = null
/** Removes what an interrupted build has written. */
process.once('exit', () => {
  if (partial !== null) fs.rmSync(partial, { recursive: true, force: true, maxRetries: 5 })
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.once(signal, () => {
    // The compilers are in the group of the command, and would otherwise write on.
    if (child?.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    process.exit(1)
  })

/**
 * Runs a command, whose output goes to the terminal.
 * @throws BuildError if it fails
 */
async function run(command, words, options = {}) {
  console.log(`$ ${[command, ...words].join(' ')}`)
  child = spawn(command, words, {
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
    ...options,
  })
  const status = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal ?? code))
  })
  if (status !== 0) throw new BuildError(`${command} ended with ${status}`)
}

/** @param folder receives the program, at its top */
async function buildGeth(folder) {
  await run('go', ['install', '-v', `${GETH_MODULE}@v${REAL_NODES.geth.version}`], {
    cwd: folder,
    env: { ...process.env, GOBIN: folder },
  })
}

async function buildBitcoind(folder) {
  const version = REAL_NODES.bitcoind.version.split('-')[1]
  const fetcher = join(folder, 'fetch')
  fs.mkdirSync(fetcher)
  fs.writeFileSync(join(fetcher, 'lib.rs'), '')
  fs.writeFileSync(
    join(fetcher, 'Cargo.toml'),
    `[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\n${CRATE} = "=${version}"\n`,
  )
  await run('cargo', ['fetch'], { cwd: fetcher })
  const metadata = spawnSync('cargo', ['metadata', '--format-version', '1', '--offline'], {
    cwd: fetcher,
    encoding: 'utf8',
    maxBuffer: 1e8,
  })
  if (metadata.status !== 0) throw new BuildError(`cargo metadata: ${metadata.stderr}`)
  const crate = JSON.parse(metadata.stdout).packages.find(({ name }) => name === CRATE)
  const build = join(folder, 'build')
  const source = join(dirname(crate.manifest_path), 'bitcoin')
  await run('cmake', ['-S', source, '-B', build, ...BITCOIND_OPTIONS.map((each) => `-D${each}`)])
  const jobs = String(availableParallelism())
  await run('cmake', ['--build', build, '--target', 'bitcoind', '--parallel', jobs])
  fs.renameSync(join(build, 'bin', 'bitcoind'), join(folder, 'bitcoind'))
  for (const each of [fetcher, build]) fs.rmSync(each, { recursive: true, force: true })
}

/** Removes what killed builds have left. */
function removeLeftovers(cache) {
  for (const name of fs.readdirSync(cache)) {
    const pid = Number(/^\.building-(\d+)-/.exec(name)?.[1] ?? 0)
    if (pid !== 0 && !isAlive(pid)) fs.rmSync(join(cache, name), { recursive: true, force: true })
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/**
 * Builds a node in a folder of its own, which gets its name only when the node is complete.
 * @returns its path
 */
async function build(name) {
  const lacking = missingFor(name)
  if (lacking.length > 0)
    throw new BuildError(
      `${lacking.map(([what, , how]) => `${what} is not installed (${how})`).join('; ')}`,
    )
  const cache = nodesCache()
  fs.mkdirSync(cache, { recursive: true, mode: 0o700 })
  removeLeftovers(cache)
  const target = builtPath(name)
  const begun = performance.now()
  console.log(`${name} ${REAL_NODES[name].version}: building into ${dirname(target)}`)
  partial = fs.mkdtempSync(join(cache, `.building-${process.pid}-`))
  await BUILDS[name](partial)
  if (!answers(join(partial, name), '--version'))
    throw new BuildError('the built program does not print its version')
  // Another process may have been faster.
  if (!fs.existsSync(target)) {
    fs.rmSync(dirname(target), { recursive: true, force: true })
    fs.renameSync(partial, dirname(target))
  }
  fs.rmSync(partial, { recursive: true, force: true })
  partial = null
  console.log(`${name}: built in ${Math.round((performance.now() - begun) / 1000)} s`)
  return target
}

/** Returns the version that a program prints. */
function versionOf(path) {
  const { stdout = '' } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return stdout.split('\n')[0]?.trim() || 'version unknown'
}

function list() {
  for (const name of Object.keys(REAL_NODES)) {
    const path = findNode(name)
    console.log(
      path === null
        ? `${name.padEnd(10)} missing: ${REAL_NODES[name].howToGet}`
        : `${name.padEnd(10)} ${versionOf(path)}, ${path}`,
    )
  }
}

let values
let positionals
try {
  ;({ values, positionals } = parseArgs({
    allowPositionals: true,
    options: { list: { type: 'boolean' }, release: { type: 'boolean' } },
  }))
  const unknown = positionals.filter((name) => !Object.hasOwn(REAL_NODES, name))
  if (unknown.length > 0)
    throw new Error(
      `There is no node ${unknown.join(', ')}. Nodes: ${Object.keys(REAL_NODES).join(', ')}`,
    )
  // Reports a variable that names a file that does not exist.
  for (const name of Object.keys(REAL_NODES)) findNode(name)
  nodesCache()
} catch (error) {
  console.error(`${error.message}\nUsage: npm run nodes:build -- [NAME…] [--release] [--list]`)
  process.exit(2)
}
if (values.list) {
  list()
  process.exit(0)
}

const [available, failed] = [[], []]
for (const name of positionals.length > 0 ? positionals : Object.keys(REAL_NODES)) {
  const path = findNode(name)
  if (path !== null) {
    console.log(`${name}: ${versionOf(path)}, ${path}`)
    available.push(name)
    continue
  }
  const lacking = missingFor(name)
  if (values.release && name === 'bitcoind' && lacking.length > 0) {
    console.log(
      `bitcoind: left out, because ${lacking.map(([what]) => what).join(', ')} is missing`,
    )
    continue
  }
  try {
    if (BUILDS[name] === undefined)
      throw new BuildError(`it is not built here: ${REAL_NODES[name].howToGet}`)
    console.log(`${name}: ${await build(name)}`)
    available.push(name)
  } catch (error) {
    if (!(error instanceof BuildError)) throw error
    if (partial !== null) fs.rmSync(partial, { recursive: true, force: true })
    partial = null
    failed.push(name)
    console.error(`${name}: ${error.message}`)
  }
}
console.log(
  [
    available.length > 0 && `available: ${available.join(', ')}`,
    failed.length > 0 && `not available: ${failed.join(', ')}`,
  ]
    .filter(Boolean)
    .join('; '),
)
process.exit(failed.length > 0 ? 1 : 0)
