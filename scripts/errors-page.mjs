// Writes docs/errors.md from the registry of errors.
//   node scripts/errors-page.mjs
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const { errorsDocument } =
  await import('../packages/platform/src/server/reference/errors-document.ts')
writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsDocument())
