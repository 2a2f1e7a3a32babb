// The properties of a chain family are in packages/chains. If another package compared a family's
// name, each new family would have to be added there as well.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokens } from './imports.ts'
import { find, json, read } from './tree.ts'

const registry = json<{ networks: { family: string; code: string }[] }>(
  'packages/chains/data/registry.json',
)
const FAMILIES = new Set(registry.networks.map(({ family }) => family))
const CODES = new Set(registry.networks.map(({ code }) => code))
/** Packages that name no family. */
const BLIND = ['signer', 'threshold']

/** `StellarClient` → stellar, client. */
const partsOf = (name: string): string[] =>
  name.split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/).map((part) => part.toLowerCase())

/**
 * Each place where a source text names a family or asks for one, in a string, a type, a variable or
 * a property, or names a network.
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

test('finds every way to name a family', () => {
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

for (const room of BLIND) {
  test(`no file of packages/${room} names a family`, () => {
    const offenders = find(`packages/${room}/src/**/*.ts`).flatMap((path) =>
      familiesNamedIn(read(path)).map((name) => `${path} names ${name}`),
    )
    assert.deepEqual(offenders, [])
  })
}

/**
 * Families are listed in `app`; providers of screening have names of their own for chains; the API
 * shows a network's family.
 */
const MAY_NAME =
  /^packages\/platform\/src\/(?:families\/|app\/|aml\/providers\/|assets\/list-assets\.ts$)/

test('no module of the platform compares a family, except for the families themselves', () => {
  const compared = (source: string) =>
    tokens(source).filter(({ kind, text }) =>
      kind === 'string' ? FAMILIES.has(text) : kind !== 'mark' && text === 'family',
    )
  assert.equal(compared("if (network.family === 'evm') {}").length, 2)
  const offenders = find('packages/platform/src/**/*.ts')
    .filter((path) => !MAY_NAME.test(path))
    .flatMap((path) => compared(read(path)).map(({ text }) => `${path} names ${text}`))
  assert.deepEqual(offenders, [])
})

test('rows of transactions, and of their submissions, are written in one place each', () => {
  const writing = (table: string) =>
    find('packages/platform/src/**/*.{ts,sql}').filter((path) =>
      new RegExp(`insert into ${table}\\b`).test(read(path)),
    )
  assert.deepEqual(writing('transactions'), [
    'packages/platform/src/database/functions/write_transaction.sql',
  ])
  assert.deepEqual(writing('chain_transactions'), ['packages/platform/src/engine/insert.ts'])
})
