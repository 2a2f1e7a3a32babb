// Builds the sites that the platform serves, by `npm run compile` (scripts/build.mjs). It skips
// sites without changes: dist/.inputs contains the hash of all inputs of the last build.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))

/** Package → display name. */
const SITES = {
  approver: 'page of the approver',
  checkout: 'checkout page',
  console: 'control panel',
  reference: 'API reference',
}

/**
 * Returns the inputs of a site: its sources, the build scripts, and the versions of bundled
 * packages.
 */
function inputs(folder) {
  const hash = createHash('sha256')
  for (const part of [folder, join(root, 'packages', 'site')]) {
    const files = globSync(['*.html', 'scripts/*.mjs', 'src/**/*.*'], { cwd: part }).sort()
    for (const file of files)
      hash
        .update(`${file}\0`)
        .update(readFileSync(join(part, file)))
        .update('\0')
    for (const name of Object.keys(
      JSON.parse(readFileSync(join(part, 'package.json'), 'utf8')).dependencies,
    )) {
      const installed = [join(part, 'node_modules', name), join(root, 'node_modules', name)].map(
        (path) => join(path, 'package.json'),
      )
      const manifest = installed.find((path) => existsSync(path))
      if (!manifest) throw new Error(`${name} is not installed. Run: npm ci`)
      hash.update(`${name}@${JSON.parse(readFileSync(manifest, 'utf8')).version}\0`)
    }
  }
  return hash.digest('hex')
}

async function buildSite(site, name) {
  const folder = join(root, 'packages', site)
  const dist = join(folder, 'dist')
  const stamp = inputs(folder)
  if (existsSync(join(dist, '.inputs')) && readFileSync(join(dist, '.inputs'), 'utf8') === stamp) {
    console.log(`${name} is up to date`)
    return
  }
  const started = Date.now()
  const { build } = await import(pathToFileURL(join(folder, 'scripts', 'build.mjs')).href)
  await build(dist, stamp)
  console.log(`${name} built in ${((Date.now() - started) / 1000).toFixed(1)} s`)
}

for (const [site, name] of Object.entries(SITES)) {
  try {
    await buildSite(site, name)
  } catch (error) {
    console.error(
      `\nThe ${name} cannot be built: ${error instanceof Error ? error.message : String(error)}\nThen run: npm run compile\n`,
    )
    process.exit(1)
  }
}
