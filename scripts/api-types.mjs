// Generates the TypeScript types of both OpenAPI documents. Run scripts/openapi.mjs first. Each
// file contains the hash of its document, which a test compares without generating the types.
//   node scripts/api-types.mjs            generates the types of both documents
//   node scripts/api-types.mjs FROM TO    generates the types of one document
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'
import { installTools } from './tooling.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
installTools(join(root, 'scripts/api-types'))
const { generateTypes } = await import('./api-types/generate.mjs')

const [from, to] = process.argv.slice(2)
const files =
  from === undefined || to === undefined
    ? [[join(root, 'docs/openapi.json'), join(root, 'packages/client/src/api.d.ts')]]
    : [[resolve(from), resolve(to)]]
const sha256 = (text) => createHash('sha256').update(text).digest('hex')
for (const [document, types] of files) {
  const text = readFileSync(document, 'utf8')
  const made = await generateTypes(JSON.parse(text))
  writeFileSync(
    types,
    `// Made by scripts/api-types.mjs.\n// document ${sha256(text)}\n// types ${sha256(made)}\n${made}`,
  )
}
