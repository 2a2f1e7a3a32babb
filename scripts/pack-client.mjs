// Creates the npm package of packages/client; `npm publish FOLDER` would publish it.
//   node scripts/pack-client.mjs [FOLDER]
import { fileURLToPath } from 'node:url'
import { join, resolve } from 'node:path'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))
const { makePackage } = await import('../packages/client/scripts/pack.mjs')
const folder = resolve(process.argv[2] ?? join(root, 'packages/client/dist'))
const { name, version, dependencies } = await makePackage(folder)
console.log(
  `${name}@${version} in ${folder}, with ${Object.keys(dependencies).length} dependencies`,
)
