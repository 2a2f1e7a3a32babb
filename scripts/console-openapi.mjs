// Writes the control panel's OpenAPI document, from which its pages get their types. A test
// compares the file with the endpoints (packages/platform/test/console-rules.test.ts).
//   node scripts/console-openapi.mjs
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { dirname, join } from 'node:path'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const { documentOf } = await import('../packages/platform/src/console/document.ts')
const { panelEndpoints } = await import('../packages/platform/src/app/panel.ts')
const file = join(root, 'packages', 'console', 'openapi.json')
mkdirSync(dirname(file), { recursive: true })
writeFileSync(file, `${JSON.stringify(documentOf(panelEndpoints), null, 1)}\n`)
