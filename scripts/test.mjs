// npm test                    every test
// npm test -- NAME…           the files whose path contains one of the names
// npm test -- --long          the long ones too (*.long.test.ts, test/long/); a long file that is
//                             named runs as well
// npm test -- --drills        of the long ones those that guard money: kills, restores, upgrades,
//                             faults
// npm test -- --order=SEED    the files in a random order that follows from the seed
// npm test -- --times         says at the end what each file took; in CI the ten dearest are always
//                             named
// npm test -- --test-…        handed to node:test, e.g. --test-name-pattern=sweep
// FUZZ_SEED=N npm test        property tests look at other examples; FUZZ_SCALE=50: those of the
//                             threshold engine at more
//
// Some files of a folder run in one process (test-group.mjs), as much of what a small file takes is
// the loading of what it tests. End-to-end tests (*.e2e.test.ts) each have a process; they start
// whole platforms, which mostly wait: they go first, three at a time for each processor, and one of
// the others for two processors beside them; then two of the others. The dearest go first, by what
// they took last time, else by their size, so that none is left alone at the end. A process that
// does not end within CUSTODY_TEST_TIMEOUT_S (900) is killed and fails. The last lines are
// node:test's totals over everything that ran.
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
/** What waits leaves some of the processors idle. */
const OTHERS_BESIDE_PER_PROCESSOR = 0.5
const FILE_TIMEOUT_MS = Number(process.env.CUSTODY_TEST_TIMEOUT_S ?? 900) * 1000

await underPinnedNode(fileURLToPath(import.meta.url))
// Each file runs in a process of its own, which needs not compile again what the one before has.
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules', '.cache', 'compile')
const CACHE = join(root, 'node_modules', '.cache', 'test')
const preload = (name) => ['--import', new URL(name, import.meta.url).href]
rememberResolved()
// Not a static import: Node 20, which may have started this file, has no globSync.
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
 * Long tests that guard money: every change runs them (`.ci/run`), where the others wait for a
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
  // A package's name alone does not start its long tests: `threshold` means the usual ones.
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

/** Folders whose tests share processes, and how many files run in one. */
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
 * Of these, what is dear has a process to itself: none waits behind another, and see
 * test-hooks.mjs.
 */
const ALONE = new Set([
  ...['nodes', 'rollback'].map((name) => `packages/signer/test/${name}.test.ts`),
  ...['nonce-gaps', 'steps'].map((name) => `packages/platform/test/${name}.test.ts`),
])
const isEndToEnd = (name) => name.endsWith('.e2e.test.ts')
/** What runs in one process, by the name under which it is told. */
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

/** How long each took when it last ran here, in seconds. */
const MEMORY = join(CACHE, 'times.json')
const remembered = existsSync(MEMORY) ? JSON.parse(readFileSync(MEMORY, 'utf8')) : {}
/** A file that is new here: about so many of its bytes take a second. */
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

/** Eight times what a platform's home takes, for each that runs at once on two processors. */
const MEMORY_BYTES_MIN = 4 * 1024 ** 3
const TOTAL = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/
const started = performance.now()
const totals = new Map()
const wallS = new Map()
const folder = temporaryFolder()
/** Each file's process writes here what it took, when it ends. */
process.env.CUSTODY_TEST_TIMES = join(folder, 'times')
writeFileSync(process.env.CUSTODY_TEST_TIMES, '')

// What many files start from is made before them, not by several of them at once.
if (files.length > 1 && files.some((file) => /^packages\/(signer|platform)\//.test(file))) {
  spawnSync(process.execPath, [join(root, 'packages', 'signer', 'test', 'data-dirs.ts')], {
    stdio: 'inherit',
  })
}

/** In an order that follows from the seed: by the hash of each name with it. */
function shuffled(list, seed) {
  const keys = new Map(
    list.map((name) => [name, createHash('sha256').update(`${seed}\0${name}`).digest('hex')]),
  )
  return list.sort((a, b) => (keys.get(a) < keys.get(b) ? -1 : 1))
}

/**
 * Every process of the run, and what it starts, finds modules where one before it found them: see
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
 * For everything that the tests write, where nobody has named one: in memory, if that is large
 * enough and files may be run there, as what tests write ten times a second and never read again
 * needs no disk. It goes with the run, however it ends.
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
 * Runs a unit in a process of its own. Its totals are kept back and added up; its events come as
 * one piece.
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
  // A test that hangs is named by its own end, before its file's.
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

/** Events of all units as of one run, each as it ends. */
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
// A part of a file says nothing about the whole.
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
// The last lines, also for whoever reads them by a program.
for (const [name, value] of totals) console.log(`ℹ ${name} ${value}`)
const failed = (totals.get('fail') ?? 1) + (totals.get('cancelled') ?? 0) > 0
process.exit(failed ? 1 : 0)
