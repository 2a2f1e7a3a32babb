// Runs the chaos tests (packages/platform/testing/chaos, docs/chaos.md).
//   npm run chaos -- --seed S --transfers N            kills processes under load
//   npm run chaos -- disk|clock|descriptors|database   fills the data folder, moves the clock, uses
//                                                      up file descriptors, stops the primary
//                                                      database
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const main = 'packages/platform/testing/chaos/main.ts'
process.exit(
  spawnSync(process.execPath, [main, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
    .status ?? 1,
)
