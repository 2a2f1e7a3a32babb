// Runs the chaos tests (packages/platform/testing/chaos, docs/chaos.md).
//   npm run chaos -- [kills] [OPTIONS]                 kills processes under load
//   npm run chaos -- disk|clock|descriptors|fork|database
//                                                      fills the data folder, moves the clock, uses
//                                                      up file descriptors, replaces final blocks,
//                                                      stops the primary database
//   --seed S                    seed for the kills and transfers (default 1)
//   --transfers N               number of transfers (default 1000)
//   --per-second P              transfers per second (default 10; database: 4)
//   --assets A,B                default BTC,ETH,XRP,SOL (database: SOL, fork: BTC,ETH,TRX)
//   --seconds-between-kills X   average time between two kills (default 1)
//   --rounds R                  kills each kind of process R times in order, instead of at random
//   --storm-seconds-max M       seconds after which the kills stop (default 1200)
//   --keep                      keeps the data folder after the run
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from './built.mjs'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
ensureBuilt()
const main = 'packages/platform/testing/chaos/main.ts'
process.exit(
  spawnSync(process.execPath, [main, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
    .status ?? 1,
)
