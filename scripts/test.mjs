// Runs the tests.
//   npm test                    runs every test
//   npm test -- NAME…           runs the files whose path contains one of the names
//   npm test -- --long          also runs long tests (*.long.test.ts, test/long/); a long file that
//                               is named runs as well
//   npm test -- --drills        of the long tests, runs those that protect money: kills, restores,
//                               upgrades, faults
//   npm test -- --order=SEED    runs the files in a random order that follows from the seed
//   npm test -- --times         prints the time of each file at the end; in CI the ten slowest are
//                               always printed
//   npm test -- --test-…        passed to node:test, e.g. --test-name-pattern=sweep
//   FUZZ_SEED=N npm test        runs property tests with other examples; FUZZ_SCALE=50: those of
//                               the threshold engine with more
//
// Some files of a folder run in one process (test-group.mjs), because loading the tested code is a
// large part of a small file's time. End-to-end tests (*.e2e.test.ts) each have their own process.
// They start whole platforms, which mostly wait, so they run first, three at a time for each
// processor, together with one other file for two processors; then two of the other files for each
// processor. The slowest run first, by their last time or else by their size, so that none remains
// alone at the end. A process that does not end within CUSTODY_TEST_TIMEOUT_S (900) is killed and
// fails. The last lines are node:test's totals of the whole run.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, freemem, tmpdir } from 'node:os'
import { basename, join, relative, sep } from 'node:path'
import { compose } from 'node:stream'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'

const END_TO_END_PER_PROCESSOR = 3
const OTHERS_PER_PROCESSOR = 2
/** Waiting end-to-end tests leave some processor time idle. */
const OTHERS_BESIDE_PER_PROCESSOR = 0.5
const FILE_TIMEOUT_MS = Number(process.env.CUSTODY_TEST_TIMEOUT_S ?? 900) * 1000

await underPinnedNode(fileURLToPath(import.meta.url))
// Each file runs in its own process, which then need not compile the same code again.
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules', '.cache', 'compile')
const CACHE = join(root, 'node_modules', '.cache', 'test')
const preload = (name) => ['--import', new URL(name, import.meta.url).href]
rememberResolved()
// A dynamic import, because Node 20, which may have started this file, has no globSync.
const { globSync } = await import('node:fs')

const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const flags = process.argv.slice(2).filter((argument) => argument.startsWith('--'))
const orderSeed = flags.find((flag) => /^--order=\d+$/.test(flag))?.slice('--order='.length)
const forwarded = flags.filter((flag) => flag.startsWith('--test-'))
const KNOWN = ['--long', '--drills', '--times']
const unknown = flags.find(
  (flag) => !KNOWN.includes(flag) && !/^--order=\d+$/.test(flag) && !forwarded.includes(flag),
)
if (unknown) {
  console.error(
    `Unknown option ${unknown}. Usage: npm test -- [--long | --drills] [--times] [--order=SEED] [--test-name-pattern=…] [NAME…]`,
  )
  process.exit(1)
}

/**
 * Long tests that protect money. They run for every change (`.ci/run`); the others run only for a
 * release.
 */
const DRILLS = new Set(
  [
    'aml-kill',
    'backup',
    'contributing',
    'banned-node',
    'faults',
    'kill',
    'pooler',
    'production',
    'recover',
    'restore',
    'tank-energy',
    'upgrade',
  ].map((name) => `packages/platform/test/${name}.long.test.ts`),
)
const isLong = (file) => /\.long\./.test(basename(file)) || file.includes('test/long/')
const all = globSync(
  [
    'packages/*/{test,src}/**/*.test.ts',
    'packages/*/test/long/*.ts',
    'test/**/*.test.ts',
    'test/long/*.ts',
  ],
  {
    cwd: root,
    exclude: (path) => basename(String(path)) === 'node_modules',
  },
).map((file) => file.split(sep).join('/'))
const files = [...new Set(all)].sort().filter((file) => {
  if (names.length > 0 && !names.some((name) => file.includes(name))) return false
  // The name of a package alone does not select its long tests: `threshold` means the usual ones.
  return (
    !isLong(file) ||
    flags.includes('--long') ||
    (flags.includes('--drills') && DRILLS.has(file)) ||
    names.some((name) => name.includes('long') || basename(file).includes(name))
  )
})
if (files.length === 0) {
  console.error(
    names.length === 0
      ? 'There are no test files.'
      : `No test file has ${names.map((name) => `"${name}"`).join(' or ')} in its path.`,
  )
  const rooms = [
    ...new Set(
      all.map((file) =>
        file
          .split('/')
          .slice(0, file.startsWith('packages/') ? 2 : 1)
          .join('/'),
      ),
    ),
  ]
  console.error(`Tests are in: ${rooms.join(', ')}`)
  process.exit(1)
}

/** Folders whose tests share processes, and the number of files in one process. */
const TOGETHER = new Map([
  ['packages/chains/test', 100],
  ['packages/request-auth/test', 100],
  ['packages/client/test', 100],
  ['test', 100],
  ['packages/devnet/test', 8],
  ['packages/signer/test', 8],
  ['packages/platform/test', 6],
])
/**
 * Slow files of these folders have their own process, so that none waits for another; see also
 * test-hooks.mjs.
 */
const ALONE = new Set([
  ...['nodes', 'rollback'].map((name) => `packages/signer/test/${name}.test.ts`),
  ...['nonce-gaps', 'steps'].map((name) => `packages/platform/test/${name}.test.ts`),
])
const isEndToEnd = (name) => name.endsWith('.e2e.test.ts')
/** Files that run in one process, by the reported name. */
const units = new Map()
for (const file of orderSeed === undefined ? files : shuffled(files, orderSeed)) {
  const [folder, count] =
    [...TOGETHER].find(
      ([each]) =>
        file.startsWith(`${each}/`) && !ALONE.has(file) && !isEndToEnd(file) && !isLong(file),
    ) ?? []
  let name = file
  for (let at = 1; folder !== undefined; at++) {
    name = `${folder}/*${at}`
    if ((units.get(name)?.length ?? 0) < count) break
  }
  units.set(name, [...(units.get(name) ?? []), file])
}

/** Duration of each file's last run on this machine, in seconds. */
const MEMORY = join(CACHE, 'times.json')
const remembered = existsSync(MEMORY) ? JSON.parse(readFileSync(MEMORY, 'utf8')) : {}
/** Bytes of a new file that are estimated to take a second. */
const BYTES_PER_S = 500
const sizeS = (members) =>
  members.reduce((sum, file) => sum + statSync(join(root, file)).size, 0) / BYTES_PER_S
const expectedS = new Map(
  [...units].map(([name, members]) => [name, remembered[name] ?? sizeS(members)]),
)
const order =
  orderSeed === undefined
    ? [...units.keys()].sort((a, b) => expectedS.get(b) - expectedS.get(a))
    : shuffled([...units.keys()], orderSeed)

/** Eight times the size of a platform's data folder, for each concurrent one on two processors. */
const MEMORY_BYTES_MIN = 4 * 1024 ** 3
const TOTAL = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/
const started = performance.now()
const totals = new Map()
const wallS = new Map()
const folder = temporaryFolder()
/** File to which each process writes its duration when it ends. */
process.env.CUSTODY_TEST_TIMES = join(folder, 'times')
writeFileSync(process.env.CUSTODY_TEST_TIMES, '')

// Shared fixtures are created before the run, so that the files do not create them concurrently.
if (files.length > 1 && files.some((file) => /^packages\/(signer|platform)\//.test(file))) {
  spawnSync(process.execPath, [join(root, 'packages', 'signer', 'test', 'data-dirs.ts')], {
    stdio: 'inherit',
  })
}

/** Shuffles a list deterministically: sorts by the hash of each name with the seed. */
function shuffled(list, seed) {
  const keys = new Map(
    list.map((name) => [name, createHash('sha256').update(`${seed}\0${name}`).digest('hex')]),
  )
  return list.sort((a, b) => (keys.get(a) < keys.get(b) ? -1 : 1))
}

/**
 * Lets every process of the run, and its children, share the cache of resolved modules: see
 * test-resolved.mjs.
 */
function rememberResolved() {
  const hash = createHash('sha256').update(process.version)
  const manifests = readdirSync(join(root, 'packages')).map((name) =>
    join('packages', name, 'package.json'),
  )
  for (const path of [join('node_modules', '.package-lock.json'), ...manifests]) {
    if (existsSync(join(root, path)))
      hash.update(`${path}\0`).update(readFileSync(join(root, path)))
  }
  const name = `modules-${hash.digest('hex').slice(0, 16)}`
  mkdirSync(CACHE, { recursive: true })
  for (const old of readdirSync(CACHE))
    if (old.startsWith('modules-') && old !== name) rmSync(join(CACHE, old), { recursive: true })
  process.env.CUSTODY_TEST_MODULES = join(CACHE, name)
  process.env.NODE_OPTIONS = [process.env.NODE_OPTIONS, ...preload('./test-resolved.mjs')]
    .join(' ')
    .trim()
}

/**
 * Creates the folder for all files of the tests, unless one is set: in memory, if that is large
 * enough and files can be executed there, because these files are written often and rarely read. It
 * is removed when the run ends, for whatever reason.
 */
function temporaryFolder() {
  const isGood = (place) => {
    try {
      const { bavail, bsize } = statfsSync(place)
      if (Math.min(bavail * bsize, freemem()) < MEMORY_BYTES_MIN) return false
      const probe = mkdtempSync(join(place, 'custody-test-run-'))
      writeFileSync(join(probe, 'probe'), '#!/bin/sh\n', { mode: 0o700 })
      const { status } = spawnSync(join(probe, 'probe'))
      rmSync(probe, { recursive: true })
      return status === 0
    } catch {
      return false
    }
  }
  const made = mkdtempSync(
    join(!process.env.TMPDIR && isGood('/dev/shm') ? '/dev/shm' : tmpdir(), 'custody-test-run-'),
  )
  process.env.TMPDIR = made
  process.once('exit', () => rmSync(made, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
  return made
}

/**
 * Runs a unit in its own process. Its totals are collected and added up; its events are printed
 * together.
 */
async function runUnit(name) {
  const events = []
  const begun = performance.now()
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), FILE_TIMEOUT_MS)
  const paths = units.get(name).map((file) => join(root, file))
  const what =
    paths.length === 1
      ? { files: paths }
      : { files: [join(root, 'scripts', 'test-group.mjs')], argv: paths }
  // A test that hangs is reported by its own timeout, before the file's timeout.
  const execArgv = [
    `--test-timeout=${FILE_TIMEOUT_MS / 2}`,
    ...preload('./test-times.mjs'),
    ...preload('./test-hooks.mjs'),
    ...forwarded,
  ]
  const stream = run({ ...what, cwd: root, execArgv, signal: deadline.signal })
  try {
    for await (const event of stream) {
      const total =
        event.type === 'test:diagnostic' &&
        event.data.nesting === 0 &&
        event.data.file === undefined
          ? TOTAL.exec(event.data.message)
          : null
      if (total) totals.set(total[1], (totals.get(total[1]) ?? 0) + Number(total[2]))
      else if (event.type !== 'test:summary') events.push(event)
    }
  } finally {
    clearTimeout(timer)
    wallS.set(name, (performance.now() - begun) / 1000)
  }
  if (deadline.signal.aborted)
    console.error(`${name}: killed, for it did not end within ${FILE_TIMEOUT_MS / 1000} s`)
  return events
}

/** Yields the events of all units as those of one run, each unit when it ends. */
async function* events() {
  const waiting = {
    endToEnd: order.filter(isEndToEnd),
    others: order.filter((name) => !isEndToEnd(name)),
  }
  const running = { endToEnd: new Set(), others: new Set() }
  const fill = (lane, most) => {
    while (waiting[lane].length > 0 && running[lane].size < most * availableParallelism()) {
      const entry = { lane, result: runUnit(waiting[lane].shift()) }
      entry.done = entry.result.then(() => entry)
      running[lane].add(entry)
    }
  }
  for (;;) {
    fill('endToEnd', END_TO_END_PER_PROCESSOR)
    const isAlone = waiting.endToEnd.length === 0
    fill(
      'others',
      isAlone
        ? OTHERS_PER_PROCESSOR - running.endToEnd.size / availableParallelism()
        : OTHERS_BESIDE_PER_PROCESSOR,
    )
    const all = Object.values(running).flatMap((entries) => [...entries])
    if (all.length === 0) return
    const ended = await Promise.race(all.map((entry) => entry.done))
    running[ended.lane].delete(ended)
    yield* await ended.result
  }
}

for await (const text of compose(events, new spec())) process.stdout.write(text)
totals.set('duration_ms', performance.now() - started)
// The times of a filtered run do not represent the whole file.
if (forwarded.length === 0) {
  mkdirSync(join(MEMORY, '..'), { recursive: true })
  writeFileSync(MEMORY, JSON.stringify({ ...remembered, ...Object.fromEntries(wallS) }))
}
if (flags.includes('--times') || process.env.CI) {
  const cpuS = new Map(
    readFileSync(process.env.CUSTODY_TEST_TIMES, 'utf8')
      .trim()
      .split('\n')
      .map((line) => {
        const [path, seconds] = line.split('\t')
        const file = relative(root, path ?? '')
          .split(sep)
          .join('/')
        return [[...units].find(([, members]) => members[0] === file)?.[0] ?? file, Number(seconds)]
      }),
  )
  const dearest = [...wallS.keys()].sort(
    (a, b) => (cpuS.get(b) ?? 0) - (cpuS.get(a) ?? 0) || wallS.get(b) - wallS.get(a),
  )
  const column = (seconds) => (seconds === undefined ? '-' : seconds.toFixed(1)).padStart(8)
  const sum = (seconds) => [...seconds.values()].reduce((all, each) => all + each, 0)
  console.log('   CPU s  wall s')
  console.log(`${column(sum(cpuS))}${column(totals.get('duration_ms') / 1000)}  all of them`)
  for (const name of flags.includes('--times') ? dearest : dearest.slice(0, 10)) {
    console.log(`${column(cpuS.get(name))}${column(wallS.get(name))}  ${name}`)
  }
}
// The last lines, which other programs also read.
for (const [name, value] of totals) console.log(`ℹ ${name} ${value}`)
const failed = (totals.get('fail') ?? 1) + (totals.get('cancelled') ?? 0) > 0
process.exit(failed ? 1 : 0)
