// Runs the platform in a randomized simulation (packages/platform/testing/simulator/simulator.test.ts,
// docs/simulation.md).
//   npm run simulate -- --seed S --seeds N
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const main = 'packages/platform/testing/simulator/main.ts'
process.exit(
  spawnSync(process.execPath, [main, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
    .status ?? 1,
)
