import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'

const LEFT_OUT = new Set(['.git', 'node_modules', '.custody', 'target', '.stryker-tmp', 'coverage'])

/**
 * Creates a copy of the project in which files may be changed: it has its own copy of our packages,
 * and links to all others.
 * @returns its folder
 */
export function copyOf(root) {
  const copy = mkdtempSync(join(tmpdir(), 'custody-mutation-'))
  cpSync(root, copy, { recursive: true, filter: (from) => !LEFT_OUT.has(basename(from)) })
  linkModules(join(root, 'node_modules'), join(copy, 'node_modules'), '@custody')
  for (const name of readdirSync(join(root, 'packages'))) {
    const own = join(root, 'packages', name, 'node_modules')
    if (existsSync(own)) linkModules(own, join(copy, 'packages', name, 'node_modules'), null)
  }
  mkdirSync(join(copy, 'node_modules', '@custody'))
  for (const name of readdirSync(join(root, 'packages'))) {
    const at = join(copy, 'node_modules', '@custody', name)
    symlinkSync(relative(join(copy, 'node_modules', '@custody'), join(copy, 'packages', name)), at)
  }
  return copy
}

function linkModules(from, to, except) {
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from))
    if (name !== except) symlinkSync(join(from, name), join(to, name))
}
