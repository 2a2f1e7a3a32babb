// Nothing is shown that nobody uses: what only its own file needs is not exported, and no package
// names a file that is not there.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { deadExports, shownBy, takenBy } from './exports.ts'
import { find, json, read, root } from './tree.ts'

interface Manifest {
  name: string
  exports?: Record<string, string>
  bin?: Record<string, string>
}
const packages = find('packages/*/package.json').map((path) => ({
  folder: dirname(path),
  ...json<Manifest>(path),
}))
/** Its users are not here. */
const PUBLISHED = '@custody/client'
/** A pattern to copy; shapes of other people's modules. */
const NOT_OURS = /^packages\/(?:chains\/src|platform\/src\/families)\/template\/|\.d\.ts$/

test('what a module shows and what it takes is found, however it is written', () => {
  assert.deepEqual(
    shownBy(`
    export const a = 1; export async function b() {}; export abstract class C {}; export type D = 1; export interface E {}
    export { f, g as h, type I } from './x.ts'; export type { J } from './x.ts'; export * from './y.ts'; export * as k from './z.ts'
    const { l } = it; export { l }; export const { m, n: o } = it; export default 1; it.export`).map(
      ({ name, isType }) => (isType ? `${name}:` : name),
    ),
    ['a', 'b', 'C', 'D:', 'E:', 'f', 'h', 'I:', 'J:', '*', 'k', 'l', 'm', 'o', 'default'],
  )
  assert.deepEqual(
    takenBy(`
    import a, { b, type C, d as e } from 's'; import type { F } from 's'; import * as g from 's'; import 's'; export { no } from 's'
    g.h(); g.i; const { j, k: l } = await import('s'); (await import('s')).m(); import('s').then((all) => all)
    type N = import('s').O; it.g.p`).map(({ name }) => name),
    ['default', 'b', 'C', 'd', 'F', 'h', 'i', 'j', 'k', 'm', '*', 'O'],
  )
})

test('an export that nobody takes is found, also behind other modules', () => {
  const sources = new Map([
    [
      'p/index.ts',
      `export { a, b } from './a.ts'; export * from './c.ts'; export * as whole from './d.ts'; export type { T } from './a.ts'`,
    ],
    [
      'p/a.ts',
      'export const a = 1; export const b = 2; export const own = 3; export type T = 1; a + own',
    ],
    ['p/c.ts', 'export const c = 1; export const cc = 1'],
    ['p/d.ts', 'export const d = 1; export const dd = 1'],
    ['q/use.ts', `import { a, c, whole } from '@p'; a + c + whole.d`],
  ])
  assert.deepEqual(deadExports(sources, new Map([['@p', 'p/index.ts']]), new Set()), [
    'p/index.ts b',
    'p/a.ts b',
    'p/a.ts own',
    'p/c.ts cc',
    'p/d.ts dd',
  ])
  assert.deepEqual(deadExports(sources, new Map([['@p', 'p/index.ts']]), new Set(['p/index.ts'])), [
    'p/a.ts own',
  ])
})

test('nothing is exported that no other file takes', () => {
  const paths = find([
    'packages/*/{src,test,bench,scripts,bin}/**/*.{ts,tsx,mjs,js}',
    'scripts/*.mjs',
    'test/*.ts',
  ])
  const entries = new Map(
    packages.flatMap(({ name, folder, exports = {} }) =>
      Object.entries(exports).map(
        ([path, file]) => [name + path.slice(1), join(folder, file)] as const,
      ),
    ),
  )
  const published = new Set(
    [...entries].filter(([specifier]) => specifier.startsWith(PUBLISHED)).map(([, path]) => path),
  )
  const dead = deadExports(new Map(paths.map((path) => [path, read(path)])), entries, published)
  assert.deepEqual(
    dead.filter(
      (each) =>
        /^packages\/[^/]+\/src\//.test(each) && !NOT_OURS.test(each.split(' ')[0] as string),
    ),
    [],
  )
})

test('every file that a package.json names is there', () => {
  const named = packages.flatMap(({ folder, exports = {}, bin = {} }) =>
    [...Object.values(exports), ...Object.values(bin)].map((file) => join(folder, file)),
  )
  assert.ok(named.length > 5)
  // A pattern stands for one file of each folder that it may name.
  assert.deepEqual(
    named.filter((file) =>
      file.includes('*') ? find(file).length === 0 : !existsSync(join(root, file)),
    ),
    [],
  )
})
