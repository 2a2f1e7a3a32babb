import assert from 'node:assert/strict'
import { test } from 'node:test'
import { importsIn } from '../testing/imports.ts'

const specifiers = (source: string) => importsIn(source).map((each) => each.specifier)

test('detects every way of importing a module', () => {
  assert.deepEqual(
    specifiers(`
    import a from 'a'
    import { b,
      type B } from "b"
    import type { C } from './c.ts'
    import 'd'
    import * as e from 'e' with { type: 'json' }
    export * from 'f'
    export { g } from 'g'
    const h = await import('h')
    const i = require('i')
    import.meta.resolve('j')
    type K = import('k').K
  `),
    ['a', 'b', './c.ts', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k'],
  )
})

test('ignores comments, strings, templates and regular expressions', () => {
  assert.deepEqual(
    specifiers(
      [
        "// import x from 'x'",
        "/* export * from 'y' */",
        'const text = "import z from \'z\'"',
        "const template = `import q from 'q' ${inner({ a: `from 'n'` })} import 'r'`",
        'const quote = /[\'"/]/g',
        "const half = 4 / 2 // 'odd",
        "const other = (1) / 2 / 3; import('real')",
        "const from = 'not-a-module'; Array.from('text')",
      ].join('\n'),
    ),
    ['real'],
  )
})

test('distinguishes type-only imports', () => {
  const typeOnly = (source: string) => importsIn(source).map((each) => each.typeOnly)
  assert.deepEqual(
    typeOnly("import type { A } from 'a'; export type { B } from 'b'; import type C from 'c'"),
    [true, true, true],
  )
  assert.deepEqual(
    typeOnly("import { type A } from 'a'; import type from 'b'; export * from 'c'; import 'd'"),
    [false, false, false, false],
  )
})
