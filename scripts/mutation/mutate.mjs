// Measures how many small changes of the code the tests detect (docs/mutation.md).
//   npm run mutate -- [MODULE…] [--jobs N] [--sql | --ts] [--file PART] [--again] [--longest MS]
//
// --file: only files whose name contains PART; it can be repeated. --again: only mutants that no
// test detected last time. --longest (TypeScript): only tests that take at most MS milliseconds.
// They detect most mutants, and a run with --again then tests the others with all tests.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureBuilt } from '../built.mjs'
import { answerHelp } from '../script-help.mjs'
import { installTools } from '../tooling.mjs'
import { copyOf } from './copy.mjs'
import { MODULES } from './modules.mjs'
import { mutantsOf } from './sql.mjs'

answerHelp(import.meta.url)
ensureBuilt()
const here = import.meta.dirname
const root = join(here, '..', '..')
/** Minimum percentage of detected mutants. */
const SCORE_LEAST = 85

const usage = () => {
  console.error(
    `Usage: npm run mutate -- [MODULE…] [--jobs N] [--sql | --ts] [--file PART] [--again] [--longest MS]\nModules: ${Object.keys(MODULES).join(', ')}`,
  )
  process.exit(2)
}
let values
let positionals
try {
  ;({ values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      jobs: { type: 'string', default: '2' },
      sql: { type: 'boolean' },
      ts: { type: 'boolean' },
      file: { type: 'string', multiple: true },
      again: { type: 'boolean' },
      longest: { type: 'string', default: 'Infinity' },
    },
  }))
} catch {
  usage()
}
const jobs = Number(values.jobs)
const longest = Number(values.longest)
const names = positionals.length > 0 ? positionals : Object.keys(MODULES)
if (
  !Number.isInteger(jobs) ||
  jobs < 1 ||
  !(longest > 0) ||
  names.some((name) => !(name in MODULES))
)
  usage()

installTools(here)
const { typescript } = await import('./typescript.mjs')
const { functions } = await import('./functions.mjs')
const { killAll } = await import('./processes.mjs')
const copies = []
process.on('exit', () => {
  killAll()
  for (const copy of copies) rmSync(copy, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
const freshCopy = () => {
  const copy = copyOf(root)
  copies.push(copy)
  return copy
}

const isNamed = (file) =>
  values.file === undefined || values.file.some((part) => file.includes(part))

/** Returns the identifier of an SQL mutant, equal in every run. */
const keyOf = (file, text) => createHash('sha256').update(`${file}\0${text}`).digest('hex')

/** Tests mutants of the database's functions, with one copy for each job. */
async function database({ sql, tests }, isSelected, save) {
  const mutants = sql
    .filter(isNamed)
    .flatMap((file) =>
      mutantsOf(readFileSync(join(root, file), 'utf8')).map((mutant) => ({
        file,
        key: keyOf(file, mutant.text),
        ...mutant,
      })),
    )
    .filter(isSelected)
  return functions(mutants, tests, {
    jobs,
    copyOf: freshCopy,
    save,
    log: (text) => console.log(text),
  })
}

/** Tests mutants behind Stryker's switches, in a separate copy. */
async function changed({ mutate, tests }, isSelected, save) {
  const copy = freshCopy()
  if (tests.some((file) => file.startsWith('packages/signer')))
    spawnSync(process.execPath, ['packages/signer/testing/data-dirs.ts'], { cwd: copy })
  return typescript(
    copy,
    { mutate, tests },
    { jobs, isNamed, longest, isSelected, save, log: (text) => console.log(text) },
  )
}

const NOTICED = new Set(['Killed', 'Timeout'])
const isNoticed = ({ how }) => NOTICED.has(how)
const CACHE = join(root, 'node_modules', '.cache', 'mutation')
const rows = []
for (const name of names) {
  const module = MODULES[name]
  const cacheFile = join(CACHE, `${name}.json`)
  // Results of earlier runs, including interrupted and partial ones: with --again, detected mutants
  // are not tested again.
  const before = existsSync(cacheFile) ? JSON.parse(readFileSync(cacheFile, 'utf8')) : []
  const all = new Map(before.map((each) => [each.key, each]))
  const detected = new Map(
    values.again ? before.filter(isNoticed).map((each) => [each.key, each]) : [],
  )
  const save = (mutants) => {
    for (const { key, file, line, what, how } of mutants)
      if (how !== 'Refused') all.set(key, { key, file, line, what, how })
    mkdirSync(CACHE, { recursive: true })
    writeFileSync(cacheFile, JSON.stringify([...all.values()]))
  }
  const detectedBefore = []
  const isSelected = (mutant) => {
    const noticed = detected.get(mutant.key)
    if (noticed) detectedBefore.push(noticed)
    return !noticed
  }
  const made = [
    ...(values.sql ? [] : await changed(module, isSelected, save)),
    ...(values.ts || !module.sql ? [] : await database(module, isSelected, save)),
  ]
  // A mutant that PostgreSQL rejects counts as neither detected nor undetected.
  const tried = made.filter(({ how }) => how !== 'Refused')
  if (tried.length < made.length)
    console.log(`${made.length - tried.length} mutants of SQL are no functions, and not counted`)
  const mutants = [...detectedBefore, ...tried]
  // Results that a complete run no longer contains belong to deleted code.
  if (values.file === undefined && (!module.sql || (!values.sql && !values.ts))) all.clear()
  save(mutants)
  const noticed = mutants.filter(isNoticed).length
  rows.push({ name, mutants: mutants.length, noticed, score: (100 * noticed) / mutants.length })
  console.log(`\n${name}: what no test noticed`)
  for (const { file, line, how, what } of mutants.filter((each) => !isNoticed(each)))
    console.log(`  ${file}:${line} ${how}: ${what}`)
}
console.log(
  `\n${'module'.padEnd(16)}${'mutants'.padStart(9)}${'noticed'.padStart(9)}${'score'.padStart(9)}`,
)
for (const { name, mutants, noticed, score } of rows) {
  console.log(
    `${name.padEnd(16)}${String(mutants).padStart(9)}${String(noticed).padStart(9)}${`${score.toFixed(1)} %`.padStart(9)}`,
  )
}
// A run without mutants fails, because it proves nothing.
process.exitCode = rows.every(({ mutants, score }) => mutants > 0 && score >= SCORE_LEAST) ? 0 : 1
