// Determines what single modules need, for a bundle without the rest of their package.
import { existsSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, normalize } from 'node:path'
import { root } from '../pinned-node.mjs'

/** Static and dynamic imports with a literal specifier, except type-only imports. */
const IMPORTS =
  /(?:^|\n)\s*(?:import|export)\b(?!\s+type\b)[^;'"()]*?\bfrom\s*'([^']+)'|\bimport\(\s*'([^']+)'\s*\)|(?:^|\n)\s*import\s+'([^']+)'/g

/** Returns the package name of a specifier. */
const packageOf = (specifier) =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/**
 * Returns the modules and the files that they import, by path, and the packages that they import,
 * including ours, by name.
 * @param isThere returns whether the bundle already contains a file with all its imports
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
  // Specifiers of our packages are resolved with the importing package's package.json, which also
  // contains the version of the command.
  for (const name of names) files.add(`${name}/package.json`)
  return { files: [...files].sort(), packages: [...packages].sort() }
}
