// Sends malformed and randomized input to the decoders, the signer nodes and the API
// (docs/fuzzing.md).
//   npm run fuzz -- --target chains|nodes|api --minutes M --seed S
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const main = 'packages/platform/testing/fuzz/main.ts'
// Exceeding the memory limit of a node ends the run.
process.exit(
  spawnSync(process.execPath, ['--max-old-space-size=1024', main, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  }).status ?? 1,
)
