// Runs the tests with node:test.
//   npm test                       the usual tests, for every change
//   npm test -- NAME…              the files whose path contains one of the names
//   npm test -- --all              also pages, whole platforms, the real engine, and long attacks
//   npm test -- --all --drills     also the long tests that protect money; --long: all long tests
//   npm test -- --times            prints the duration of each file
//   npm test -- --order=SEED       the files in a random order that follows from the seed
//   npm test -- --test-…           options of node:test, such as --test-name-pattern=TITLE
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { availableParallelism, freemem, tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { compose } from 'node:stream'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { ensureBuilt } from './built.mjs'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)

await underPinnedNode(fileURLToPath(import.meta.url))
ensureBuilt()
// TypeScript, which the Node that runs npm may not read.
const { HOW_TO_GET_A_BROWSER } = await import('../testing/browser.ts')
const { provideBrowser } = await import('./browser.mjs')

const TIMEOUT_MS = Number(process.env.CUSTODY_TEST_TIMEOUT_S ?? 3600) * 1000
/**
 * Tests of whole platforms, pages, local chains, the engine with real shares, programs that start
 * others, and long attacks. They need `--all`, or a name in their path.
 */
const SLOW = new RegExp(
  [
    '/(browser|e2e)/',
    '^packages/(devnet|threshold)/',
    '^packages/client/src/package\\.',
    '^packages/platform/testing/simulator/',
    '^packages/platform/src/(server|core/families|core/engine/endpoints)/',
    '^packages/platform/src/core/(database/(embedded-postgres|plans)|signing/hot-wallet)\\.',
    '^packages/signer/src/(keys|kek|recover|sessions|set-up)/',
    '^packages/signer/src/(end-to-end|hardening|killed)\\.',
    '^packages/signer/src/operator/enrolment\\.',
    '^packages/signer/src/signing/(attacks|enrolment-approvals|hostile-node|nodes)\\.',
    '^packages/signer/src/store/(erased|rollback)\\.',
    '^test/(build|monitoring)\\.',
    // Single files that take many seconds of processor time.
    '/(frozen-concurrently|wait-for-approvals|recorded-answers|invoices|shared-spending(-windows)?)\\.test',
    '/(unreadable-coins|verify-address|trading/orders|utxo-parents|coins-aside|operator-orders)\\.test',
    '/(replacements|restored|signing/policies|block-cache|large-parents|resets|api-idempotency)\\.test',
    '/(webhooks/webhooks|host-clock|exchange-accounts|waiting-list|node-answers|convergence)\\.test',
    '/(evaluate\\.property|analysis/diff|judged-acts|deposits-reorg|rescan|api-and-nodes|aml-order)\\.test',
    '/(exchange-transfers|orders-histories|invoices-mempool|console-rules|engine/waiting|trust/trust)\\.test',
  ].join('|'),
)
const LONG = /\.long\./
/** Long tests that protect money: kills, restores, upgrades, faults. */
const DRILLS =
  /\/(aml-kill|backup|banned-node|faults|kill|pooler|recover|restore|tank-energy|upgrade)\.long\./
/** Folders whose small files share processes, and the number of files in one process. */
const TOGETHER = {
  chains: 100,
  'request-auth': 100,
  client: 100,
  policy: 100,
  devnet: 8,
  signer: 8,
  platform: 6,
}
/** Files that have their own process, because they start whole platforms or are slow. */
const ALONE =
  /\/(e2e|browser)\/|\.long\.|devnet\/src\/control\.|signer\/src\/(signing\/nodes|store\/rollback)\.|\/(backup\/backup-tampered|evm\/nonce-gaps|families\/steps|database\/plans|sessions\/cheating-node|simulator)\./
/** Import of the files whose tests start a browser. */
const BROWSER = '/testing/browser.ts'
/** Starts the database server and creates the keys that these files use. */
const SETUP = join(root, 'packages/platform/testing/global-setup.ts')
const NEEDS_SETUP = /^packages\/(platform|signer|checkout)\//
/** Free memory that is enough for the files that tests write. */
const MEMORY_BYTES_MIN = 4 * 1024 ** 3

const options = process.argv.slice(2).filter((argument) => argument.startsWith('--'))
const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const unknown = options.find((each) => !/^--(all|long|drills|times|order=\d+|test-.+)$/.test(each))
const isNamed = (file) => names.length === 0 || names.some((name) => file.includes(name))
const isChosen = (file) => {
  // The name of a package alone does not select its long tests: `threshold` means the usual ones.
  if (LONG.test(file))
    return (
      options.includes('--long') ||
      (options.includes('--drills') && DRILLS.test(file)) ||
      names.some((name) => name.includes('long') || basename(file).includes(name))
    )
  return names.length > 0 || options.includes('--all') || !SLOW.test(file)
}
const pattern = '{packages/*/{src,testing,e2e,browser,drills},test}/**/*.test.ts'
const exclude = (path) => basename(path) === 'node_modules'
const named = [...new Set(fs.globSync(pattern, { cwd: root, exclude }))].filter(isNamed)
const chosen = named.filter(isChosen)
const idle = names.find((name) => !chosen.some((file) => file.includes(name)))
if (unknown || idle) {
  console.error(unknown ? `Unknown option ${unknown}` : `No test file has ${idle} in its path.`)
  console.error('npm test -- --help lists the options.')
  process.exit(1)
}

const needsBrowser = (file) => fs.readFileSync(join(root, file), 'utf8').includes(BROWSER)
const hasBrowser = !chosen.some(needsBrowser) || provideBrowser()
const files = hasBrowser ? chosen : chosen.filter((file) => !needsBrowser(file))
if (!hasBrowser && process.env.CI) {
  console.error(`The tests of pages need a browser: ${HOW_TO_GET_A_BROWSER}`)
  process.exit(1)
}
if (files.some((file) => SLOW.test(file) || LONG.test(file)))
  process.env.CUSTODY_TEST_REAL_KEYS = '1'

// All files that tests write are in one folder, in memory if possible, and are removed at the end.
const memory = fs.existsSync('/dev/shm') && fs.statfsSync('/dev/shm')
const isInMemory =
  !process.env.TMPDIR &&
  Math.min(memory.bavail * memory.bsize, freemem()) > MEMORY_BYTES_MIN &&
  !/ \/dev\/shm .*noexec/.test(fs.readFileSync('/proc/mounts', 'utf8'))
const folder = fs.mkdtempSync(join(isInMemory ? '/dev/shm' : tmpdir(), 'custody-test-run-'))
// For root in a container, PostgreSQL runs as another user, who must reach its files below.
fs.chmodSync(folder, 0o711)
process.once('exit', () => fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
process.env.TMPDIR = folder
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules', '.cache', 'compile')

const seed = options.find((each) => each.startsWith('--order='))
const hash = (name) => createHash('sha256').update(`${seed}${name}`).digest('hex')
const ordered = files.sort((a, b) => ((seed ? hash(a) < hash(b) : a < b) ? -1 : 1))
// Small files share a process, because loading the tested code is a large part of their time.
const counts = {}
const groups = Map.groupBy(ordered, (file) => {
  const [area, name] = file.split('/')
  const count = area === 'test' ? 100 : TOGETHER[name]
  if (ALONE.test(file) || !count) return file
  const key = area === 'test' ? area : name
  counts[key] = (counts[key] ?? -1) + 1
  return `${key}-${Math.floor(counts[key] / count) + 1}`
})
const size = (members) => members.reduce((sum, file) => sum + fs.statSync(join(root, file)).size, 0)
// Large files start first, so that none of them is left alone at the end.
const rank = ([, members]) => size(members) + (ALONE.test(members[0]) ? 1e6 : 0)
const ranked = seed ? [...groups] : [...groups].sort((a, b) => rank(b) - rank(a))
const programs = ranked.map(([name, members]) => {
  if (members.length === 1) return members[0]
  const program = join(folder, `${name}.mjs`)
  const suites = members.map((file) => [file, pathToFileURL(join(root, file)).href])
  // The timer keeps the process alive while a test waits only for timers that do not.
  const text = `import { describe } from 'node:test'
let name
process.once('exit', () => name && console.error(name + ' ended the process'))
const alive = setInterval(() => undefined, 60_000)
for (const [file, url] of ${JSON.stringify(suites)}) await describe((name = file), () => import(url))
clearInterval(alive, (name = null))`
  fs.writeFileSync(program, text)
  return program
})

// A test that hangs fails first; a process that does not end is ended.
const late = encodeURIComponent(
  `console.error('not ended within ${TIMEOUT_MS} ms'), process.exit(1)`,
)
const stream = run({
  files: programs,
  cwd: root,
  concurrency: 3 * availableParallelism(),
  execArgv: [
    `--test-timeout=${TIMEOUT_MS / 2}`,
    `--import=data:text/javascript,setTimeout(()=>{${late}},${TIMEOUT_MS}).unref()`,
    ...options.filter((each) => each.startsWith('--test-')),
  ],
  globalSetupPath: files.some((file) => NEEDS_SETUP.test(file)) ? SETUP : undefined,
})
const [totals, times, skipped] = [[], new Map(), new Map()]
async function* events() {
  for await (const event of stream) {
    const { type, data } = event
    if (type === 'test:diagnostic' && data.nesting === 0 && !data.file) totals.push(data.message)
    else yield event
    if (type === 'test:pass' && typeof data.skip === 'string')
      skipped.set(data.skip, (skipped.get(data.skip) ?? 0) + 1)
    // A file is a process of its own, or a suite of its group.
    const name = type === 'test:summary' ? relative(root, data.file ?? root) : data.name
    const ms = data.duration_ms ?? data.details?.duration_ms
    if (files.includes(name) && ms !== undefined) times.set(name, ms / 1000)
    if (type === 'test:summary' && !data.file) process.exitCode = data.success ? 0 : 1
  }
}
process.exitCode = 1
for await (const text of compose(events, new spec())) process.stdout.write(text)
const slowest = [...times].sort(([, a], [, b]) => b - a)
if (options.includes('--times') || process.env.CI)
  for (const [name, seconds] of slowest) console.log(`${seconds.toFixed(1).padStart(8)} s  ${name}`)
const count = (number, noun) => `${number} ${noun}${number === 1 ? '' : 's'}`
for (const [reason, number] of skipped) console.log(`skipped ${count(number, 'test')}: ${reason}`)
if (!hasBrowser)
  console.log(`skipped ${count(chosen.length - files.length, 'file')}: ${HOW_TO_GET_A_BROWSER}`)
const leftOut = {
  '--all': named.filter((file) => !LONG.test(file) && !isChosen(file)).length,
  '--all --long': named.filter((file) => LONG.test(file) && !isChosen(file)).length,
}
const command = (option) => `npm test -- ${[option, ...names].join(' ')}`
// The totals, which other programs also read.
for (const line of totals) console.log(`ℹ ${line}`)
for (const [option, number] of Object.entries(leftOut))
  if (number > 0) console.log(`left out ${count(number, 'file')}: ${command(option)}`)
