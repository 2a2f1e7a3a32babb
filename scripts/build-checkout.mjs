// Builds the checkout page and widget of packages/checkout, after `npm install` and by `npm run build`. Nothing is built when
// nothing changed: dist/.inputs keeps the hash of all that the last build was made of.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'

await underPinnedNode(fileURLToPath(import.meta.url))

const folder = join(root, 'packages', 'checkout')
const dist = join(folder, 'dist')

/** Sources, the script that builds them, and the versions of what is built in. */
function inputs() {
  const hash = createHash('sha256')
  const files = globSync(['index.html', 'scripts/*.mjs', 'src/**/*.*'], { cwd: folder }).sort()
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(join(folder, file))).update('\0')
  for (const name of Object.keys(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).dependencies)) {
    const installed = [join(folder, 'node_modules', name), join(root, 'node_modules', name)].map((path) => join(path, 'package.json'))
    const manifest = installed.find((path) => existsSync(path))
    if (!manifest) fail(`${name} is not installed. Run: npm ci`)
    hash.update(`${name}@${JSON.parse(readFileSync(manifest, 'utf8')).version}\0`)
  }
  return hash.digest('hex')
}

function fail(text) {
  console.error(`\nThe checkout page cannot be built: ${text}\n`)
  process.exit(1)
}

const stamp = inputs()
if (existsSync(join(dist, '.inputs')) && readFileSync(join(dist, '.inputs'), 'utf8') === stamp) {
  console.log('checkout page is up to date')
} else {
  const started = Date.now()
  try {
    const { buildCheckout } = await import('../packages/checkout/scripts/build.mjs')
    await buildCheckout(dist, stamp)
  } catch (error) {
    fail(`${error instanceof Error ? error.message : String(error)}\nThen run: npm run build`)
  }
  console.log(`checkout page built in ${((Date.now() - started) / 1000).toFixed(1)} s`)
}
