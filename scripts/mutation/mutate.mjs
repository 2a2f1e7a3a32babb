// npm run mutate -- [MODULE…] [--jobs N] [--sql | --ts]: how many small changes of the code the tests notice (docs/mutation.md).
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { copyOf } from './copy.mjs'
import { MODULES } from './modules.mjs'
import { mutantsOf } from './sql.mjs'

const here = import.meta.dirname
const root = join(here, '..', '..')
/** Of the mutants that were made, so many are noticed. */
const SCORE_LEAST = 85
const TEST_TIMEOUT_MS = 180_000

const usage = () => {
  console.error(`Usage: npm run mutate -- [MODULE…] [--jobs N] [--sql | --ts]\nModules: ${Object.keys(MODULES).join(', ')}`)
  process.exit(2)
}
let values
let positionals
try {
  ({ values, positionals } = parseArgs({
    allowPositionals: true, options: { jobs: { type: 'string', default: '2' }, sql: { type: 'boolean' }, ts: { type: 'boolean' } },
  }))
} catch {
  usage()
}
const jobs = Number(values.jobs)
const names = positionals.length > 0 ? positionals : Object.keys(MODULES)
if (!Number.isInteger(jobs) || jobs < 1 || names.some((name) => !(name in MODULES))) usage()

if (!existsSync(join(here, 'node_modules', '@stryker-mutator'))) {
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-fund', '--no-audit'], { cwd: here, stdio: 'inherit' })
  if (status !== 0) process.exit(1)
}
const copies = []
process.on('exit', () => copies.forEach((copy) => rmSync(copy, { recursive: true, force: true })))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
const freshCopy = () => {
  const copy = copyOf(root)
  copies.push(copy)
  return copy
}

/** Stryker's mutants, in a copy that it changes. @returns those that were made, each with how it ended */
function typescript({ mutate, tests }) {
  const copy = freshCopy()
  if (tests.some((file) => file.startsWith('packages/signer'))) spawnSync(process.execPath, ['packages/signer/test/homes.ts'], { cwd: copy })
  const report = join(copy, 'mutation.json')
  writeFileSync(join(copy, 'stryker.json'), JSON.stringify({
    testRunner: 'tap',
    tap: { testFiles: tests, nodeArgs: ['--test-reporter=tap'], forceBail: true }, coverageAnalysis: 'perTest', inPlace: true,
    mutate, concurrency: jobs, timeoutMS: 20_000, timeoutFactor: 4, dryRunTimeoutMinutes: 15,
    reporters: ['progress-append-only', 'json'], jsonReporter: { fileName: report }, allowConsoleColors: false, checkers: [],
    tempDirName: join(copy, '.stryker-tmp'), disableTypeChecks: false,
  }))
  const { status } = spawnSync(process.execPath, [join(here, 'node_modules', '@stryker-mutator', 'core', 'bin', 'stryker.js'), 'run', 'stryker.json'], {
    cwd: copy, stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (status !== 0 || !existsSync(report)) throw new Error('Stryker did not end well')
  const { files } = JSON.parse(readFileSync(report, 'utf8'))
  return Object.entries(files).flatMap(([file, { source, mutants }]) => mutants.map(({ location, replacement, mutatorName, status: how }) => ({
    file, line: location.start.line, how,
    what: `${mutatorName}: ${textAt(source, location).replaceAll(/\s+/g, ' ').slice(0, 100)} → ${(replacement ?? '').replaceAll(/\s+/g, ' ').slice(0, 60)}`,
  })))
}

function textAt(source, { start, end }) {
  const lines = source.split('\n').slice(start.line - 1, end.line)
  lines[lines.length - 1] = lines.at(-1).slice(0, end.column - 1)
  lines[0] = lines[0].slice(start.column - 1)
  return lines.join('\n')
}

/** Whether all of a copy's tests pass: `passed`, `failed` or `timeout`. */
async function run(copy, tests) {
  for (const file of tests) {
    const child = spawn(process.execPath, ['--test', '--test-reporter=dot', file], { cwd: copy, stdio: 'ignore', detached: true })
    let late = false
    const timer = setTimeout(() => {
      late = true
      process.kill(-child.pid, 'SIGKILL')
    }, TEST_TIMEOUT_MS)
    const code = await new Promise((resolve) => child.once('exit', resolve))
    clearTimeout(timer)
    if (late) return 'timeout'
    if (code !== 0) return 'failed'
  }
  return 'passed'
}

/** Mutants of the database's functions: a copy for each job. */
async function database({ sql, tests }) {
  const waiting = sql.flatMap((file) => mutantsOf(readFileSync(join(root, file), 'utf8')).map((mutant) => ({ file, ...mutant })))
  const total = waiting.length
  const ended = []
  await Promise.all(Array.from({ length: jobs }, async () => {
    const copy = freshCopy()
    if (await run(copy, tests) !== 'passed') throw new Error(`the tests fail without a change: ${tests.join(' ')}`)
    for (let mutant = waiting.shift(); mutant; mutant = waiting.shift()) {
      const { file, line, what, text } = mutant
      writeFileSync(join(copy, file), text)
      const how = { passed: 'Survived', failed: 'Killed', timeout: 'Timeout' }[await run(copy, tests)]
      writeFileSync(join(copy, file), readFileSync(join(root, file)))
      ended.push({ file, line, what, how })
      if (how === 'Survived') console.log(`${file}:${line} survived: ${what}`)
      if (ended.length % 20 === 0) console.log(`${ended.length} of ${total} mutants of SQL`)
    }
  }))
  return ended
}

const NOTICED = new Set(['Killed', 'Timeout'])
const rows = []
for (const name of names) {
  const module = MODULES[name]
  const mutants = [
    ...values.sql ? [] : typescript(module),
    ...values.ts || !module.sql ? [] : await database(module),
  ].filter(({ how }) => !['Ignored', 'CompileError'].includes(how))
  const noticed = mutants.filter(({ how }) => NOTICED.has(how)).length
  rows.push({ name, mutants: mutants.length, noticed, score: (100 * noticed) / mutants.length })
  console.log(`\n${name}: what no test noticed`)
  for (const { file, line, how, what } of mutants.filter((each) => !NOTICED.has(each.how))) console.log(`  ${file}:${line} ${how}: ${what}`)
}
console.log(`\n${'module'.padEnd(16)}${'mutants'.padStart(9)}${'noticed'.padStart(9)}${'score'.padStart(9)}`)
for (const { name, mutants, noticed, score } of rows) {
  console.log(`${name.padEnd(16)}${String(mutants).padStart(9)}${String(noticed).padStart(9)}${`${score.toFixed(1)} %`.padStart(9)}`)
}
// A run that made nothing has shown nothing.
process.exitCode = rows.every(({ mutants, score }) => mutants > 0 && score >= SCORE_LEAST) ? 0 : 1
