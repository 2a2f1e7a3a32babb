// Runs the platform in a randomized simulation (packages/platform/testing/simulator/simulator.test.ts,
// docs/simulation.md).
//   npm run simulate -- [--seed S] [--seeds N] [--jobs J] [--hostile | --byzantine [--attacks LIST]]
//                       [--brief] [--shrink T] [--draws FILE]
//   --seed S       first seed (default 1)
//   --seeds N      number of seeds to run, from S on (default 1)
//   --jobs J       number of processes (default 1)
//   --hostile      a hostile platform sends requests of its own to three signer nodes
//   --byzantine    one of three signer nodes is hostile; the platform and the other two are honest
//   --attacks LIST with --byzantine: kinds of attacks, separated by commas; "none": the node is honest
//   --brief        prints failed seeds, every hundredth seed, and the totals
//   --shrink T     after a failure, searches T seconds for a shorter run that fails too (default 0)
//   --draws FILE   repeats the recorded random choices of a failure
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from './built.mjs'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
ensureBuilt()
const main = 'packages/platform/testing/simulator/main.ts'
process.exit(
  spawnSync(process.execPath, [main, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
    .status ?? 1,
)
