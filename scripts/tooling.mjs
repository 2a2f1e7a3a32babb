// Installs tools that neither the product nor the tests need. They have their own package.json and
// package-lock.json, and are installed on first use: docs (the documentation site), scripts/lint,
// scripts/api-types, scripts/browser, scripts/mutation.
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './pinned-node.mjs'

/** File in a folder's node_modules that contains the lock file from which it was installed. */
const STAMP = '.installed-from.json'

/**
 * Installs the packages of the folder's lock file, unless they are installed. They are installed in
 * another folder, which is then renamed, so that a partial installation is never used and
 * concurrent ones do not conflict. If npm fails, this process exits.
 * @param folder absolute path
 */
export function installTools(folder) {
  const problem = tryInstallTools(folder)
  if (!problem) return
  console.error(problem)
  process.exit(1)
}

/** The same, but returns the message of the failure, or `undefined`. */
export function tryInstallTools(folder) {
  const name = relative(root, folder)
  const modules = join(folder, 'node_modules')
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8')
  const isCurrent = () =>
    existsSync(join(modules, STAMP)) && readFileSync(join(modules, STAMP), 'utf8') === lock
  if (isCurrent()) return undefined
  console.error(`installing the tools of ${name}`)
  // Ignored by git and by everything that walks the tree.
  const fresh = mkdtempSync(join(folder, 'node_modules.'))
  process.once('exit', () => rmSync(fresh, { recursive: true, force: true }))
  for (const file of ['package.json', 'package-lock.json'])
    copyFileSync(join(folder, file), join(fresh, file))
  const words = ['ci', '--ignore-scripts', '--no-fund', '--no-audit', '--loglevel=error']
  const { status, error } = spawnSync('npm', words, { cwd: fresh, stdio: ['ignore', 2, 2] })
  if (status !== 0) {
    rmSync(fresh, { recursive: true, force: true })
    return `The tools of ${name} cannot be installed: ${error?.message ?? `npm ci ended with ${status}`}`
  }
  mkdirSync(join(fresh, 'node_modules'), { recursive: true })
  writeFileSync(join(fresh, 'node_modules', STAMP), lock)
  try {
    if (existsSync(modules) && !isCurrent()) renameSync(modules, join(fresh, 'earlier'))
    renameSync(join(fresh, 'node_modules'), modules)
  } catch (reason) {
    // Another process was faster.
    if (!isCurrent()) throw reason
  }
  rmSync(fresh, { recursive: true, force: true })
  return undefined
}
