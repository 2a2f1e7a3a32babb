import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ModifiedCopy, fencedBlocks } from '../testing/modified-copy.ts'

// Carries out the examples of CONTRIBUTING.md and docs/adding-a-chain.md in a copy of the source
// tree, one after the other: adds the printed files and registry entries, applies the patches, and
// runs the printed check. new-family.long adds a family of chains.
const copy = new ModifiedCopy()
after(() => copy.remove())

for (const [document, heading, own] of [
  ['CONTRIBUTING.md', 'Add an endpoint', 'lists the networks of the registry'],
  ['CONTRIBUTING.md', 'Add an event', 'deleting a webhook emits webhook.deleted once'],
  ['docs/adding-a-chain.md', 'A token', 'main networks, tokens and coins are those that'],
  ['docs/adding-a-chain.md', 'An EVM network', 'the example configuration has a valid entry'],
  ['docs/adding-a-chain.md', 'A UTXO coin', 'every local UTXO network of the registry has'],
] as const)
  test(`the change "${heading}" passes its check when carried out as written`, () => {
    const blocks = (language: string) => fencedBlocks(document, heading, language)
    for (const block of blocks('ts')) {
      const [, path, text] = /^\/\/ (packages\/\S+)\n([^]*)$/.exec(block) ?? []
      assert.ok(path !== undefined && text !== undefined, `no path in the first line of ${block}`)
      copy.write(path, text)
    }
    const entries = blocks('json')
    if (entries.length > 0)
      copy.addToRegistry(entries.map((block) => JSON.parse(block) as Record<string, unknown>))
    for (const patch of blocks('diff')) copy.apply(patch)
    const output = copy.check(blocks('sh').join('\n'))
    assert.ok(output.includes(`✔ ${own}`), output)
    assert.match(output, /^ℹ fail 0$/m)
  })
