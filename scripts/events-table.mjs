// Writes the table of docs/events.md from the registry of events.
//   node scripts/events-table.mjs
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const file = new URL('../docs/events.md', import.meta.url)
const { withTable } = await import('../packages/platform/src/events/events/table.ts')
writeFileSync(file, withTable(readFileSync(file, 'utf8')))
