// Tools that neither a run nor a test needs have a package.json and a package-lock.json of their
// own, and are installed when they are first used: docs (the documentation site), scripts/lint,
// scripts/api-types, scripts/mutation.
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

/** In a folder's node_modules: the lock that it was installed from. */
const STAMP = '.installed-from.json'

/**
 * Installs what the folder's lock names, unless it is there. It is installed beside and then
 * renamed: nothing half installed is ever used, and two that begin at once do not disturb each
 * other. Where npm fails, so does this process.
 * @param folder absolute
 */
export function installTools(folder) {
  const name = relative(root, folder)
  const modules = join(folder, 'node_modules')
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8')
  const isCurrent = () =>
    existsSync(join(modules, STAMP)) && readFileSync(join(modules, STAMP), 'utf8') === lock
  if (isCurrent()) return
  console.error(`installing the tools of ${name}`)
  // Foreign to everything that walks the tree, and ignored by git.
  const fresh = mkdtempSync(join(folder, 'node_modules.'))
  process.once('exit', () => rmSync(fresh, { recursive: true, force: true }))
  for (const file of ['package.json', 'package-lock.json'])
    copyFileSync(join(folder, file), join(fresh, file))
  const words = ['ci', '--ignore-scripts', '--no-fund', '--no-audit', '--loglevel=error']
  const { status, error } = spawnSync('npm', words, { cwd: fresh, stdio: ['ignore', 2, 2] })
  if (status !== 0) {
    console.error(
      `The tools of ${name} cannot be installed: ${error?.message ?? `npm ci ended with ${status}`}`,
    )
    process.exit(1)
  }
  mkdirSync(join(fresh, 'node_modules'), { recursive: true })
  writeFileSync(join(fresh, 'node_modules', STAMP), lock)
  try {
    if (existsSync(modules) && !isCurrent()) renameSync(modules, join(fresh, 'earlier'))
    renameSync(join(fresh, 'node_modules'), modules)
  } catch (reason) {
    // Another process was quicker.
    if (!isCurrent()) throw reason
  }
  rmSync(fresh, { recursive: true, force: true })
}
