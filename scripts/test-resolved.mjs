// Loaded before everything that a test run starts, by NODE_OPTIONS: see scripts/test.mjs.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import * as modules from 'node:module'

/**
 * Where each import of this house and of what it has installed leads: to find that out anew, past
 * symbolic links and package.json files, is two fifths of what the start of a node or of a platform
 * takes, and a run starts hundreds. What is not known yet is found as ever, and written down when
 * the process ends. There is a file for each package that imports; their folder's name changes with
 * what is installed and with the package.json files. What stands outside the tree, as a changed
 * copy of it does, is no part.
 */
const folder = process.env.CUSTODY_TEST_MODULES
const root = new URL('../', import.meta.url).href
const PACKAGE = /^(?:.*node_modules\/(?:@[^/]+\/)?|[^/]+\/)[^/]+/

const fileOf = (name) => `${folder}/${encodeURIComponent(name)}.json`
const read = (name) =>
  existsSync(fileOf(name)) ? JSON.parse(readFileSync(fileOf(name), 'utf8')) : {}

// An older Node, as a test may run, has none.
if (folder && modules.registerHooks) {
  const known = new Map()
  const found = new Map()
  modules.registerHooks({
    resolve(specifier, context, next) {
      const { parentURL, conditions } = context
      if (!parentURL?.startsWith(root)) return next(specifier, context)
      const parent = parentURL.slice(root.length)
      const name = PACKAGE.exec(parent)?.[0] ?? ''
      if (!known.has(name)) known.set(name, read(name))
      const asked = `${specifier} ${parent} ${conditions}`
      const answer = known.get(name)[asked]
      if (answer)
        return { url: root + answer[0], format: answer[1] ?? undefined, shortCircuit: true }
      const resolved = next(specifier, context)
      const { url, format } = resolved
      if (url.startsWith(root) && !`${url}${parentURL}`.includes('?')) {
        if (!found.has(name)) found.set(name, {})
        found.get(name)[asked] = [url.slice(root.length), format]
      }
      return resolved
    },
  })
  process.once('exit', () => {
    mkdirSync(folder, { recursive: true })
    for (const [name, more] of found) {
      // Another process may have written meanwhile; what is lost is found again.
      const draft = `${fileOf(name)}.${process.pid}`
      writeFileSync(draft, JSON.stringify({ ...read(name), ...more }))
      renameSync(draft, fileOf(name))
    }
  })
}
