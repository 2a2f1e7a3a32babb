// Code that depends on the chain family belongs in packages/chains. If another package compared a
// family's name, every new family would require a change there.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokens } from '../testing/imports.ts'
import { findSources, json, read } from '../testing/tree.ts'

const registry = json<{ networks: { family: string; code: string }[] }>(
  'packages/chains/data/registry.json',
)
const FAMILIES = new Set(registry.networks.map(({ family }) => family))
const CODES = new Set(registry.networks.map(({ code }) => code))
/** Packages that must not name a family. */
const BLIND = ['signer', 'threshold']

/** Splits a name into words: `StellarClient` → stellar, client. */
const partsOf = (name: string): string[] =>
  name.split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/).map((part) => part.toLowerCase())

/**
 * Returns each place where a source text names or reads a family, in a string, a type, a variable
 * or a property, or names a network.
 */
function familiesNamedIn(source: string): string[] {
  return tokens(source)
    .filter(
      ({ kind, text }) =>
        kind !== 'mark' &&
        ((kind === 'string' && CODES.has(text)) ||
          partsOf(text).some(
            (part) => part === 'family' || part === 'families' || FAMILIES.has(part),
          )),
    )
    .map(({ text }) => text)
}

test('detects every way of naming a chain family', () => {
  assert.ok(FAMILIES.size >= 7)
  for (const source of [
    "if (network.family === 'x') {}",
    "const of = new Set(['evm', 'tron'])",
    'type Name = FamilyName',
    "import { cardano } from '@custody/chains'",
    'let dust = network.utxo?.dust',
    'let action: TronAction',
    'switch (kind) { case "solana": }',
    'const XRP_LEDGERS = 1',
    "if (network.code === 'TRX') {}",
  ])
    assert.ok(familiesNamedIn(source).length > 0, source)
  assert.deepEqual(familiesNamedIn("// stellar, by the clock\nconst strong = 'electron'"), [])
})

for (const folder of BLIND) {
  test(`no source file of packages/${folder} names a chain family`, () => {
    const offenders = findSources(`packages/${folder}/src/**/*.ts`).flatMap((path) =>
      familiesNamedIn(read(path)).map((name) => `${path} names ${name}`),
    )
    assert.deepEqual(offenders, [])
  })
}

/**
 * Modules that may name families: `app` lists them, screening providers have their own names for
 * chains, and the API returns a network's family.
 */
const MAY_NAME =
  /^packages\/platform\/src\/(?:core\/families\/|server\/app\/|custody\/aml\/providers\/|custody\/assets\/list-assets\.ts$)/

test('only platform modules in families compare a chain family', () => {
  const compared = (source: string) =>
    tokens(source).filter(({ kind, text }) =>
      kind === 'string' ? FAMILIES.has(text) : kind !== 'mark' && text === 'family',
    )
  assert.equal(compared("if (network.family === 'evm') {}").length, 2)
  const offenders = findSources('packages/platform/src/**/*.ts')
    .filter((path) => !MAY_NAME.test(path))
    .flatMap((path) => compared(read(path)).map(({ text }) => `${path} names ${text}`))
  assert.deepEqual(offenders, [])
})

test('rows of transactions and chain_transactions are each inserted by exactly one statement', () => {
  const writing = (table: string) =>
    findSources('packages/platform/src/**/*.{ts,sql}').filter((path) =>
      new RegExp(`insert into ${table}\\b`).test(read(path)),
    )
  assert.deepEqual(writing('transactions'), [
    'packages/platform/src/core/database/functions/write_transaction.sql',
  ])
  assert.deepEqual(writing('chain_transactions'), ['packages/platform/src/core/engine/insert.ts'])
})
