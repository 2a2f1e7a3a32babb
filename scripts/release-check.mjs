// Runs everything that a release requires, and prints a table at the end (docs/releasing.md).
//   npm run release-check                      runs all parts
//   npm run release-check -- --only NAME…      runs some parts
//   npm run release-check -- --list            lists the parts and their commands
//   --out FOLDER       folder for the output of each part
//   --seeds N, --hostile-seeds N, --seed FIRST, --fuzz-minutes N, --transfers N, --jobs N
//                      size of the randomized parts
//
// It has no time limit and takes hours. A part that fails does not stop the others. Each part's
// output is in --out (by default release-check/ in the folder for temporary files), and the table
// contains its summary lines.
import { spawn, spawnSync } from 'node:child_process'
import { createWriteStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))

let values
let positionals
try {
  ;({ values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string', multiple: true },
      list: { type: 'boolean' },
      out: { type: 'string', default: join(tmpdir(), 'release-check') },
      seeds: { type: 'string', default: '10000' },
      'hostile-seeds': { type: 'string', default: '10000' },
      seed: { type: 'string', default: '100000' },
      'fuzz-minutes': { type: 'string', default: '60' },
      transfers: { type: 'string', default: '1000' },
      jobs: { type: 'string', default: String(availableParallelism()) },
    },
  }))
  for (const name of ['seeds', 'hostile-seeds', 'seed', 'fuzz-minutes', 'transfers', 'jobs']) {
    if (!/^[1-9]\d{0,8}$/.test(values[name]))
      throw new Error(
        `--${name}: must be a whole number from 1, not ${JSON.stringify(values[name])}`,
      )
  }
} catch (error) {
  console.error(`${error.message}
Usage: npm run release-check -- [--only NAME…] [--list] [--out FOLDER] [--seeds N] [--hostile-seeds N] [--seed FIRST]
         [--fuzz-minutes N] [--transfers N] [--jobs N]`)
  process.exit(2)
}

const { seeds, seed, transfers, jobs } = values
const npm = (...words) => ['npm', 'run', '--silent', ...words]
/** Name, command, and a function that summarizes the output. */
const simulation = (name, count, ...kind) => [
  name,
  npm('simulate', '--', ...kind, '--seed', seed, '--seeds', count, '--jobs', jobs, '--brief'),
  lastLine,
]

const PARTS = [
  // Without these programs, tests that compare the local chains with them would be skipped.
  ['real-nodes', npm('nodes:build', '--', '--release'), lastLine],
  ['engine', npm('engine'), null],
  ['advisories', ['node', 'scripts/advisories.mjs'], lastLine],
  ['typecheck', npm('typecheck'), null],
  ['lint', npm('lint'), null],
  ['documentation', npm('docs', '--', '--build'), null],
  ['tests', ['npm', 'test', '--silent', '--', '--all'], totals],
  ['random-order', ['npm', 'test', '--silent', '--', '--all', `--order=${seed}`], totals],
  ['long-tests', ['npm', 'test', '--silent', '--', '--long', '.long.'], totals],
  ['calendar', npm('calendar', '--', '--all'), totals],
  simulation('simulation', seeds),
  simulation('hostile', values['hostile-seeds'], '--hostile'),
  simulation('byzantine', '1000', '--byzantine'),
  ['chaos', npm('chaos', '--', '--seed', seed, '--transfers', transfers), lastLine],
  ...['disk', 'clock', 'descriptors', 'database'].map((kind) => [
    `chaos-${kind}`,
    npm('chaos', '--', kind),
    lastLine,
  ]),
  ...['chains', 'nodes', 'api'].map((target) => [
    `fuzz-${target}`,
    npm('fuzz', '--', '--target', target, '--minutes', values['fuzz-minutes'], '--seed', seed),
    lastLine,
  ]),
  ['schemathesis', npm('schemathesis', '--', '--examples', '200', '--seed', seed), lastLine],
  ['generated-clients', ['node', 'scripts/generated-clients.mjs'], lastLine],
  ['mutation', npm('mutate', '--', '--jobs', jobs), scores],
  ['benchmarks', npm('bench'), lastLine],
]

const wanted = [...(values.only ?? []), ...positionals]
const unknown = wanted.filter((name) => !PARTS.some(([part]) => part === name))
if (unknown.length > 0) {
  console.error(
    `There is no part ${unknown.join(', ')}. Parts: ${PARTS.map(([part]) => part).join(', ')}`,
  )
  process.exit(2)
}
if (values.list) {
  for (const [name, command] of PARTS) console.log(`${name.padEnd(18)}${command.join(' ')}`)
  process.exit(0)
}

function lastLine(text) {
  return text.trim().split('\n').at(-1)?.trim() ?? ''
}

/** Returns node:test's totals, added up if there were several runs. */
function totals(text) {
  const sum = (name) =>
    [...text.matchAll(new RegExp(`^ℹ ${name} (\\d+)$`, 'gm'))].reduce(
      (all, [, count]) => all + Number(count),
      0,
    )
  return `${sum('tests')} tests, ${sum('pass')} passed, ${sum('fail') + sum('cancelled')} failed, ${sum('skipped')} skipped`
}

/** Returns the lines of modules with their scores. */
function scores(text) {
  return [
    ...new Set(
      text
        .split('\n')
        .filter((line) => /\d %/.test(line))
        .map((line) => line.trim().replaceAll(/\s+/g, ' ')),
    ),
  ]
    .slice(-12)
    .join('; ')
}

/**
 * Runs a command; its output goes to the terminal and to a file.
 * @returns its exit status
 */
function play([command, ...words], file) {
  const log = createWriteStream(file)
  const child = spawn(command, words, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const [stream, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ]) {
    stream.on('data', (piece) => {
      to.write(piece)
      log.write(piece)
    })
  }
  return new Promise((resolve) => {
    child.once('error', (error) => {
      log.write(`${error.message}\n`)
      log.end(() => resolve(1))
    })
    child.once('close', (code) => log.end(() => resolve(code ?? 1)))
  })
}

const durationOf = (seconds) =>
  `${Math.floor(seconds / 3600)}:${String(Math.floor(seconds / 60) % 60).padStart(2, '0')}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`
mkdirSync(values.out, { recursive: true })
const rows = []
for (const [name, command, summary] of PARTS.filter(
  ([part]) => wanted.length === 0 || wanted.includes(part),
)) {
  console.log(`\n== ${name}: ${command.join(' ')}`)
  const file = join(values.out, `${name}.log`)
  const begun = performance.now()
  const status = await play(command, file)
  rows.push({
    name,
    status,
    seconds: (performance.now() - begun) / 1000,
    summary: summary?.(readFileSync(file, 'utf8')) ?? '',
  })
}
const table = [
  '| Part | Result | Duration | Summary |',
  '|---|---|---|---|',
  ...rows.map(
    ({ name, status, seconds, summary }) =>
      `| ${name} | ${status === 0 ? 'passed' : `failed (${status})`} | ${durationOf(seconds)} | ${summary} |`,
  ),
]
writeFileSync(join(values.out, 'table.md'), `${table.join('\n')}\n`)
// `npm run release` reads this file.
const { stdout: commit } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' })
const result = {
  commit: commit?.trim() ?? '',
  parts: rows.map(({ name, status }) => ({ name, status })),
  missing: PARTS.map(([name]) => name).filter((name) => !rows.some((row) => row.name === name)),
}
writeFileSync(join(values.out, 'release-check.json'), `${JSON.stringify(result, null, 2)}\n`)
console.log(`\n${table.join('\n')}\n\nOutput of each part: ${values.out}`)
process.exit(rows.every(({ status }) => status === 0) ? 0 : 1)
