// npm run chaos -- --seed S --transfers N    processes that are killed under load
//                                            (packages/platform/test/chaos, docs/chaos.md)
// npm run chaos -- disk|clock|descriptors|database   the data folder runs full, the clock jumps,
//                                                    files run out, the primary fails
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const main = 'packages/platform/test/chaos/main.ts'
process.exit(
  spawnSync(process.execPath, [main, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
    .status ?? 1,
)
