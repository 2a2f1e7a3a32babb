// The version of the project: in each package.json, in the dependencies between the packages, and
// in package-lock.json.
import { readdirSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const json = (path) => JSON.parse(readFileSync(path, 'utf8'))

const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/
export const isVersion = (text) => VERSION.test(text)

/** Compares two versions X.Y.Z: negative if `a` is lower than `b`, 0 if they are equal. */
export function compareVersions(a, b) {
  const [left, right] = [a, b].map((text) => text.split('.').map(BigInt))
  for (const [at, value] of left.entries())
    if (value !== right[at]) return value < right[at] ? -1 : 1
  return 0
}

const manifestsOf = (root) => [
  'package.json',
  ...readdirSync(join(root, 'packages'))
    .toSorted()
    .map((name) => `packages/${name}/package.json`)
    .filter((path) => existsSync(join(root, path))),
]

/** Returns dependencies of a manifest on packages of this project, with their positions. */
const ownDependencies = (manifest) =>
  ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'].flatMap((field) =>
    Object.keys(manifest[field] ?? {})
      .filter((name) => name.startsWith('@custody/'))
      .map((name) => [field, name]),
  )

/**
 * Returns the common version of all packages.
 *
 * @param root folder of the repository
 * @throws Error with each file that contains another version
 */
export function currentVersion(root) {
  const { version } = json(join(root, 'package.json'))
  const wrong = manifestsOf(root).flatMap((path) => {
    const manifest = json(join(root, path))
    return [
      ...(manifest.version === version ? [] : [`${path}: version ${manifest.version}`]),
      ...ownDependencies(manifest)
        .filter(([field, name]) => manifest[field][name] !== version)
        .map(([field, name]) => `${path}: ${name} ${manifest[field][name]}`),
    ]
  })
  if (wrong.length > 0)
    throw new Error(`package.json has version ${version}, but:\n  ${wrong.join('\n  ')}`)
  return version
}

/**
 * Writes a version into every manifest and the lock file.
 * @returns the paths that changed
 */
export function writeVersion(root, version) {
  const changed = []
  const rewrite = (path, edit) => {
    const before = readFileSync(join(root, path), 'utf8')
    const content = JSON.parse(before)
    edit(content)
    const after = `${JSON.stringify(content, null, 2)}\n`
    if (after === before) return
    writeFileSync(join(root, path), after)
    changed.push(path)
  }
  const setVersion = (manifest) => {
    manifest.version = version
    for (const [field, name] of ownDependencies(manifest)) manifest[field][name] = version
  }
  for (const path of manifestsOf(root)) rewrite(path, setVersion)
  rewrite('package-lock.json', (lock) => {
    lock.version = version
    for (const [path, entry] of Object.entries(lock.packages))
      if (path === '' || (path.startsWith('packages/') && !path.includes('node_modules')))
        setVersion(entry)
  })
  return changed
}
