import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

// The facts of docs/protocol/cryptography.md that the sources also contain. `cargo test` compares
// engine-parameters.json with the constants of the crates.

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const page = read('docs/protocol/cryptography.md')
const parameters = JSON.parse(
  read('packages/threshold/testing/vectors/engine-parameters.json'),
) as Record<string, string | number | string[]>

/** The cells of the rows below a heading, without the table's head. */
function rows(heading: string): string[][] {
  const section = page.split(`\n${heading}\n`)[1]?.split(/\n##/)[0]
  assert.ok(section, heading)
  const lines = section.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

const unquoted = (cell: string | undefined): string => cell?.replaceAll('`', '') ?? ''
const rustSources = (): string[] =>
  globSync('packages/*/native/{src/**/*.rs,build.rs}', { cwd: ROOT }).sort()

test('the page states the versions and the parameters of the engines', () => {
  const { dkls23_version: dkls, frost_version: frost, tags, ...numbers } = parameters
  assert.ok(Array.isArray(tags))
  assert.ok(page.includes(`\`dkls23-secp256k1\` and \`dkls23-core\` ${String(dkls)}`))
  assert.ok(page.includes(`\`frost-core\` ${String(frost)}`))
  assert.deepEqual(
    Object.fromEntries(
      rows('## Parameters').map(([name, value]) => [unquoted(name), Number(value)]),
    ),
    numbers,
  )
})

test('the page lists each tag of the crate and of the addon once', () => {
  const own = rustSources()
    .filter((path) => path.startsWith('packages/threshold/') && !path.includes('transcripts'))
    .flatMap((path) => [...read(path).matchAll(/"(custody\/[a-z0-9/-]+)"/g)].map(([, tag]) => tag))
  assert.ok(own.length > 5)
  assert.deepEqual(
    rows('## Domain separation tags')
      .map(([tag]) => unquoted(tag))
      .sort(),
    [...(parameters['tags'] as string[]), ...new Set(own)].sort(),
  )
})

test('the verifier uses only tags that the page lists', () => {
  const listed = new Set(rows('## Domain separation tags').map(([tag]) => unquoted(tag)))
  const files = globSync('docs/protocol/verify/*.py', { cwd: ROOT })
  assert.ok(files.length > 5)
  const used = files
    .flatMap((path) => [...read(path).matchAll(/"((?:dkls23|custody)\/[a-z0-9/-]+?)(?:-with-|")/g)])
    .map(([, tag]) => tag!)
  assert.ok(used.length > 25)
  assert.deepEqual(
    used.filter((tag) => !listed.has(tag)),
    [],
  )
})

test('the page lists the unsafe code of each Rust file', () => {
  const counted = rustSources().flatMap((path) => {
    const code = read(path).replaceAll(/\/\/.*$/gm, '')
    const { length } = code.match(/\bunsafe\b/g) ?? []
    return length > 0 ? [[path, length]] : []
  })
  assert.deepEqual(
    rows('### Unsafe code')
      .map(([path, number]) => [unquoted(path), Number(number)])
      .sort(),
    counted,
  )
})

test('each check in the tables has one of the three results', () => {
  const tables = [
    '### Every message of both engines',
    '### DKLs23: key generation and complete refresh',
    '### DKLs23: signature',
    '### FROST: key generation and refresh',
    '### FROST: signature',
  ]
  for (const table of tables)
    for (const cells of rows(table)) {
      const result = unquoted(cells.at(-1))
      assert.match(result, /^(MALFORMED|ABORT|CHEAT)$/, cells.join(' | '))
      if (result === 'CHEAT') assert.equal(table, '### DKLs23: signature')
    }
})
