// npm run fuzz -- --target chains|nodes|api --minutes M --seed S    what nobody means is decoded,
//                                                                   asked and answered
//                                                                   (docs/fuzzing.md)
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const main = 'packages/platform/test/fuzz/main.ts'
// What takes more memory than a node may have ends the run.
process.exit(
  spawnSync(process.execPath, ['--max-old-space-size=1024', main, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  }).status ?? 1,
)
