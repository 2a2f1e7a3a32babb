// Loaded before everything that a test run starts, by NODE_OPTIONS: see scripts/test.mjs.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import * as modules from 'node:module'
import { pathToFileURL } from 'node:url'

/**
 * Where each import of this house and of what it has installed leads: to find that out anew, past symbolic links and
 * package.json files, is two fifths of what the start of a node or of a platform takes, and a run starts hundreds. What is
 * not known yet is found as ever, and written down when the process ends. The file's name changes with what is installed and
 * with the package.json files (see scripts/test.mjs); what stands outside the tree, as a changed copy of it does, is no part.
 */
const file = process.env.CUSTODY_TEST_RESOLVED
const root = pathToFileURL(new URL('../', import.meta.url).pathname).href
const read = () => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {})

// An older Node, as a test may run, has none.
if (file && modules.registerHooks) {
  const known = read()
  const found = []
  modules.registerHooks({
    resolve(specifier, context, next) {
      const { parentURL, conditions } = context
      if (!parentURL?.startsWith(root)) return next(specifier, context)
      const parent = parentURL.slice(root.length)
      const kind = conditions.join()
      const answer = known[kind]?.[parent]?.[specifier]
      if (answer) return { url: root + answer[0], format: answer[1] ?? undefined, shortCircuit: true }
      const resolved = next(specifier, context)
      const { url, format } = resolved
      if (url.startsWith(root) && !`${url}${parentURL}`.includes('?')) found.push([kind, parent, specifier, [url.slice(root.length), format]])
      return resolved
    },
  })
  process.once('exit', () => {
    if (found.length === 0) return
    // Another process may have written meanwhile; what is lost is found again.
    const all = read()
    for (const [kind, parent, specifier, answer] of found) ((all[kind] ??= {})[parent] ??= {})[specifier] = answer
    const draft = `${file}.${process.pid}`
    writeFileSync(draft, JSON.stringify(all))
    renameSync(draft, file)
  })
}
