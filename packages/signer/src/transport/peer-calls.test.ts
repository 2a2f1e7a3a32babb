import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Paths of calls between nodes that the code names, as `/peer/sign/open`. */
function callsInCode(): string[] {
  const names = new Set<string>()
  const folder = file('../')
  for (const name of globSync('**/*.ts', { cwd: folder })) {
    if (name.endsWith('.test.ts')) continue
    const text = readFileSync(`${folder}${name}`, 'utf8')
    for (const [, call] of text.matchAll(/['"`](\/peer(?:\/[a-z-]+)+)['"`]/g)) names.add(call!)
  }
  return [...names].sort()
}

test('each call between nodes has a row that states what the word of a peer may change', () => {
  const page = readFileSync(file('../../../../docs/protocol/third-node.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `(\/peer\/[a-z/-]+)` +\|(.+)\|$/gm)]
  const calls = callsInCode()
  assert.ok(calls.length > 30, `${calls.length} calls`)
  assert.deepEqual(rows.map(([, call]) => call!).sort(), calls)
  for (const [, call, cells] of rows) {
    const filled = cells!.split('|').filter((cell) => cell.trim() !== '')
    assert.equal(filled.length, 3, `${call!} states change, proof and bound`)
  }
})

test('each handler of a call is registered by a name that the page contains', () => {
  const calls = new Set(callsInCode())
  const folder = file('../')
  for (const name of globSync('**/*.ts', { cwd: folder })) {
    if (name.endsWith('.test.ts')) continue
    const text = readFileSync(`${folder}${name}`, 'utf8')
    for (const [, argument] of text.matchAll(/\bpeers\.handle\(\s*([^,]+),/g)) {
      const constant = new RegExp(`const ${argument!} = '([^']+)'`).exec(text)?.[1]
      const call = constant ?? argument!.replaceAll("'", '')
      assert.ok(calls.has(call), `${name} handles ${argument!}`)
    }
  }
})
