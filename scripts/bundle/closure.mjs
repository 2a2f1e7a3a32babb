// What single modules need, for a bundle that has nothing else of their package.
import { existsSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, normalize } from 'node:path'
import { root } from '../pinned-node.mjs'

/** Static and dynamic imports with a literal specifier, but for those of types alone. */
const IMPORTS =
  /(?:^|\n)\s*(?:import|export)\b(?!\s+type\b)[^;'"()]*?\bfrom\s*'([^']+)'|\bimport\(\s*'([^']+)'\s*\)|(?:^|\n)\s*import\s+'([^']+)'/g

/** The name of the package that a specifier is of. */
const packageOf = (specifier) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/**
 * Files that these modules import, and they themselves, by their paths; packages that they import,
 * ours too, by their names.
 * @param isThere whether a file is in the bundle anyway, with all that it imports
 */
export function moduleClosure(modules, isThere) {
  const files = new Set()
  const packages = new Set()
  const visit = (path) => {
    if (files.has(path) || isThere(path)) return
    if (!existsSync(join(root, path))) throw new Error(`${path} is imported and is not there`)
    files.add(path)
    if (!/\.[cm]?[jt]s$/.test(path)) return
    for (const [, first, second, third] of readFileSync(join(root, path), 'utf8').matchAll(
      IMPORTS,
    )) {
      const specifier = first ?? second ?? third
      if (specifier.startsWith('.')) visit(normalize(join(dirname(path), specifier)))
      else if (!isBuiltin(specifier)) packages.add(packageOf(specifier))
    }
  }
  for (const module of modules) visit(module)
  const names = new Set(
    [...files]
      .map((path) => path.split('/').slice(0, 2).join('/'))
      .filter((path) => path.startsWith('packages/')),
  )
  // Specifiers of our packages resolve by the package.json of who asks; the version of the command
  // is read from there, too.
  for (const name of names) files.add(`${name}/package.json`)
  return { files: [...files].sort(), packages: [...packages].sort() }
}
