// npm run bench                    every benchmark
// npm run bench -- NAME…           the files whose path contains one of the names
//
// A benchmark is packages/*/bench/*.bench.ts: a program that prints what it measured and exits non-zero where
// a floor it names is missed. They run one at a time, so that each has the machine to itself.
import { spawnSync } from 'node:child_process'
import { cpus } from 'node:os'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
// Not a static import: Node 20, which may have started this file, has no globSync.
const { globSync } = await import('node:fs')

const names = process.argv.slice(2)
const files = globSync('packages/*/bench/*.bench.ts', { cwd: root }).map((file) => file.split(sep).join('/')).sort()
  .filter((file) => names.length === 0 || names.some((name) => file.includes(name)))
if (files.length === 0) {
  console.error(names.length === 0 ? 'There are no benchmarks yet (packages/*/bench/*.bench.ts).' : `No benchmark has ${names.map((name) => `"${name}"`).join(' or ')} in its path.`)
  process.exit(1)
}
console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`)
let failed = 0
for (const file of files) {
  console.log(`\n${file}`)
  if (spawnSync(process.execPath, [file], { cwd: root, stdio: 'inherit' }).status !== 0) failed++
}
process.exit(failed > 0 ? 1 : 0)
