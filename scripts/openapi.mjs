// Writes docs/openapi.json from the endpoints.
//   node scripts/openapi.mjs
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const { apiDocument } = await import('../packages/platform/src/server/app/document.ts')
writeFileSync(
  new URL('../docs/openapi.json', import.meta.url),
  `${JSON.stringify(apiDocument('http://127.0.0.1:8080'), null, 1)}\n`,
)
