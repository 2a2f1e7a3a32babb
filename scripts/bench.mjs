// Runs benchmarks. A benchmark is packages/*/bench/*.bench.ts: a program that prints its
// measurements (testing/figures.ts: name, value, floor, ratio, target) and exits non-zero if a target
// is missed. They run one at a time, so that each has the whole machine.
//   npm run bench                    runs every benchmark
//   npm run bench -- NAME…           runs the files whose path contains one of the names
//   npm run bench -- --json FILE     also writes the measurements as JSON
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import { parseArgs } from 'node:util'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from './built.mjs'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
ensureBuilt()
// A dynamic import, because Node 20, which may have started this file, has no globSync.
const { globSync } = await import('node:fs')

const {
  values: { json },
  positionals: names,
} = parseArgs({ options: { json: { type: 'string' } }, allowPositionals: true })
const files = globSync('packages/*/bench/*.bench.ts', { cwd: root })
  .map((file) => file.split(sep).join('/'))
  .sort()
  .filter((file) => names.length === 0 || names.some((name) => file.includes(name)))
if (files.length === 0) {
  console.error(
    names.length === 0
      ? 'There are no benchmarks yet (packages/*/bench/*.bench.ts).'
      : `No benchmark has ${names.map((name) => `"${name}"`).join(' or ')} in its path.`,
  )
  process.exit(1)
}
console.log(
  `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`,
)
let failed = 0
const folder = mkdtempSync(join(tmpdir(), 'custody-bench-'))
const noted = join(folder, 'figures')
writeFileSync(noted, '')
for (const file of files) {
  console.log(`\n${file}`)
  const env = { ...process.env, CUSTODY_BENCH_FIGURES: noted }
  if (spawnSync(process.execPath, [file], { cwd: root, stdio: 'inherit', env }).status !== 0)
    failed++
}
if (json !== undefined) {
  const figures = readFileSync(noted, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
  writeFileSync(
    json,
    `${JSON.stringify({ node: process.version, processors: cpus().map(({ model }) => model), figures }, null, 2)}\n`,
  )
}
rmSync(folder, { recursive: true })
process.exit(failed > 0 ? 1 : 0)
