// What holds in a mode is stated for each kind of mode, so that a new kind cannot be forgotten.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isMode } from '../packages/chains/src/mode.ts'
import { networkMode } from '../packages/request-auth/src/bodies/index.ts'
import { findSources, read } from '../testing/tree.ts'

/** Comparison with a mode's name, or a list of the names. */
const COMPARED = /[!=]== '(?:local|mainnet)'|'(?:local|mainnet)' [!=]==|\['local', 'mainnet'\]/

/** Modules that cannot import the functions of packages/chains, and the module of the functions. */
const ALLOWED = [
  'packages/chains/src/mode.ts',
  // The page shows what the platform reports.
  'packages/console/src/page/shell.tsx',
  // The package knows no chains.
  'packages/policy/src/analysis/lint-people.ts',
  'packages/request-auth/src/bodies/fields.ts',
]

test('no other module compares a mode itself', () => {
  const found = findSources('packages/*/src/**/*.{ts,tsx}').filter((path) =>
    COMPARED.test(read(path)),
  )
  assert.deepEqual(found, ALLOWED)
})

test('the schema of requests and files accepts exactly the modes', () => {
  const written = fc.oneof(
    fc.string(),
    fc.constantFrom('local', 'mainnet', 'regtest', 'regtest-'),
    fc
      .tuple(fc.constantFrom('regtest-', 'regtest', 'local-'), fc.integer())
      .map((of) => of.join('')),
    fc
      .tuple(fc.constant('regtest-'), fc.stringMatching(/^[0-9.e+ -]{1,17}$/))
      .map((of) => of.join('')),
  )
  fc.assert(
    fc.property(written, (text) => networkMode.safeParse(text).success === isMode(text)),
    { numRuns: 2000 },
  )
})
