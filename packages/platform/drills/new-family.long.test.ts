import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ModifiedCopy, fencedBlocks } from '../testing/modified-copy.ts'

// Adds a family of chains to a copy of the tree, following docs/adding-a-chain.md exactly.
const DOCUMENT = 'docs/adding-a-chain.md'
const HEADING = 'A new family'
const copy = new ModifiedCopy()
after(() => copy.remove())

const TRANSFERS = 'packages/platform/testing/toy/transfer.test.ts'

/** Files to which the document's lines of code are added, in the order of the lines. */
const LISTS = ['packages/chains/src/list.ts', 'packages/platform/src/server/app/families.ts']

test('a new chain family needs only the documented commands and lines', () => {
  const [made] = fencedBlocks(DOCUMENT, HEADING, 'sh')
  assert.equal(made, 'npx node scripts/new-family.mjs toy\n')
  const copied = copy.node('scripts/new-family.mjs', 'toy')
  assert.equal(copied.status, 0, copied.output)
  const lines = fencedBlocks(DOCUMENT, HEADING, 'ts')
  assert.deepEqual(
    lines.map((text) => text.trim().split('\n').length),
    [1, 1],
  )
  for (const [at, path] of LISTS.entries()) copy.append(path, lines[at] as string)
  const added = fencedBlocks(DOCUMENT, HEADING, 'json').map(
    (block) => JSON.parse(block) as Record<string, unknown>,
  )
  assert.deepEqual(
    added.map((line) => line['asset_name'] ?? line['code'] ?? line['ticker']),
    ['TOY', 'TOY', 'TOY'],
  )
  copy.addToRegistry(added)
  const { added: files, changed } = copy.changes()
  assert.deepEqual(changed, ['packages/chains/data/registry.json', ...LISTS])
  const folders = [
    'packages/chains/src/toy/',
    'packages/platform/src/core/families/toy/',
    'packages/platform/testing/toy/',
  ]
  assert.deepEqual(
    files.filter((path) => !folders.some((folder) => path.startsWith(folder))),
    [],
  )
})

test('a new family passes its check, and its generated tests send transfers successfully', () => {
  const output = copy.check(fencedBlocks(DOCUMENT, HEADING, 'sh').join('\n'))
  for (const path of ['packages/chains/src/toy/toy.test.ts', TRANSFERS])
    assert.ok(output.includes(`✔ ${path}`), output)
  assert.match(output, /^ℹ fail 0$/m)
})

test('an invalid or used family name is refused, and nothing is copied', () => {
  for (const args of [[], ['../evil'], ['Toy'], ['toy', 'too'], ['toy'], ['evm']]) {
    const before = copy.changes()
    assert.notEqual(copy.node('scripts/new-family.mjs', ...args).status, 0, args.join(' '))
    assert.deepEqual(copy.changes(), before)
  }
})
