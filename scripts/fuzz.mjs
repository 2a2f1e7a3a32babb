// Sends malformed and randomized input to the decoders, the signer nodes and the API
// (docs/fuzzing.md).
//   npm run fuzz -- [--target chains|nodes|api] [--minutes M] [--seed S] [--from CASE] [--count CASES]
//   --target         what receives the input (default chains)
//   --minutes M      duration (default 1)
//   --seed S         seed of the random generator (default 1)
//   --from CASE      first case; with --count 1 it repeats one case
//   --count CASES    number of cases, instead of a duration
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from './built.mjs'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
ensureBuilt()
const main = 'packages/platform/testing/fuzz/main.ts'
// Exceeding the memory limit of a node ends the run.
process.exit(
  spawnSync(process.execPath, ['--max-old-space-size=1024', main, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  }).status ?? 1,
)
