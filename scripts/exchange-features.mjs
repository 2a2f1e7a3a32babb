// Writes packages/platform/data/exchanges.json from ccxt's description of each exchange.
//   node scripts/exchange-features.mjs
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const { exchangeFeatures } =
  await import('../packages/platform/testing/venues/exchange-features.ts')
writeFileSync(
  new URL('../packages/platform/data/exchanges.json', import.meta.url),
  `${JSON.stringify(exchangeFeatures(), null, 1)}\n`,
)
