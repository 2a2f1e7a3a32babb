import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** Folders that contain none of our files. */
const FOREIGN = new Set(['node_modules', 'target', '.git', '.custody', 'dist', 'coverage'])

/** Returns our files that match, as sorted paths below the root. */
export function find(pattern: string | string[]): string[] {
  return globSync(pattern, {
    cwd: root,
    exclude: (path) =>
      FOREIGN.has((path.split('/').at(-1) as string).replace(/^node_modules\..*/, 'node_modules')),
  }).sort()
}

/** Returns our source files that match, without the tests beside them. */
export const findSources = (pattern: string): string[] =>
  find(pattern).filter((path) => !path.endsWith('.test.ts'))

export const read = (path: string): string => readFileSync(join(root, path), 'utf8')
export const json = <T>(path: string): T => JSON.parse(read(path)) as T
