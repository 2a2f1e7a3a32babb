// Generates what the client takes from the OpenAPI document: its TypeScript types, and the names of
// the fields whose numbers are counts. Run scripts/openapi.mjs first. The types contain the hash of
// the document, which a test compares without generating them.
//   node scripts/api-types.mjs            generates both
//   node scripts/api-types.mjs FROM TO    generates the types of another document
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'
import { installTools } from './tooling.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
installTools(join(root, 'scripts/api-types'))
const { countsOf } = await import('./api-types/counts.mjs')
const { generateTypes } = await import('./api-types/generate.mjs')

const [from, to] = process.argv.slice(2)
const isOwn = from === undefined || to === undefined
const document = isOwn ? join(root, 'docs/openapi.json') : resolve(from)
const sha256 = (text) => createHash('sha256').update(text).digest('hex')
const text = readFileSync(document, 'utf8')
const made = await generateTypes(JSON.parse(text))
writeFileSync(
  isOwn ? join(root, 'packages/client/src/api.d.ts') : resolve(to),
  `// Made by scripts/api-types.mjs.\n// document ${sha256(text)}\n// types ${sha256(made)}\n${made}`,
)
if (isOwn)
  writeFileSync(
    join(root, 'packages/client/src/counts.ts'),
    `// Made by scripts/api-types.mjs.
/** Fields of responses whose numbers are counts, by the OpenAPI document. */
export const API_COUNTS: readonly string[] = [
${countsOf(JSON.parse(text))
  .map((name) => `  '${name}',\n`)
  .join('')}]
`,
  )
