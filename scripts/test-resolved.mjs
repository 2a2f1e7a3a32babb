// Loaded with NODE_OPTIONS before everything that a test run starts: see scripts/test.mjs.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import * as modules from 'node:module'

/**
 * Cache of import resolutions of this project and its installed packages. Resolving symbolic links
 * and package.json files again takes two fifths of the start of a node or platform, and a run
 * starts hundreds. Unknown imports are resolved normally and stored when the process ends. There is
 * one file for each importing package; their folder's name depends on the installed packages and
 * the package.json files. Files outside of the tree, such as a modified copy of it, are not cached.
 */
const folder = process.env.CUSTODY_TEST_MODULES
const root = new URL('../', import.meta.url).href
const PACKAGE = /^(?:.*node_modules\/(?:@[^/]+\/)?|[^/]+\/)[^/]+/

const fileOf = (name) => `${folder}/${encodeURIComponent(name)}.json`
const read = (name) =>
  existsSync(fileOf(name)) ? JSON.parse(readFileSync(fileOf(name), 'utf8')) : {}

// Older Node versions, which a test may use, do not support it.
if (folder && modules.registerHooks) {
  const cache = new Map()
  const resolutions = new Map()
  modules.registerHooks({
    resolve(specifier, context, next) {
      const { parentURL, conditions } = context
      if (!parentURL?.startsWith(root)) return next(specifier, context)
      const parent = parentURL.slice(root.length)
      const name = PACKAGE.exec(parent)?.[0] ?? ''
      if (!cache.has(name)) cache.set(name, read(name))
      const request = `${specifier} ${parent} ${conditions}`
      const answer = cache.get(name)[request]
      if (answer)
        return { url: root + answer[0], format: answer[1] ?? undefined, shortCircuit: true }
      const resolved = next(specifier, context)
      const { url, format } = resolved
      if (url.startsWith(root) && !`${url}${parentURL}`.includes('?')) {
        if (!resolutions.has(name)) resolutions.set(name, {})
        resolutions.get(name)[request] = [url.slice(root.length), format]
      }
      return resolved
    },
  })
  process.once('exit', () => {
    mkdirSync(folder, { recursive: true })
    for (const [name, more] of resolutions) {
      // Another process may have written concurrently; lost entries are resolved again.
      const draft = `${fileOf(name)}.${process.pid}`
      writeFileSync(draft, JSON.stringify({ ...read(name), ...more }))
      renameSync(draft, fileOf(name))
    }
  })
}
