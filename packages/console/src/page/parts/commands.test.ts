import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

test('the panel takes the name of the command line from the server', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const files = globSync('**/*.{ts,tsx}', { cwd: root })
    .filter((file) => !file.endsWith('.test.ts'))
    .filter((file) => !file.endsWith('.test.ts'))
  assert.ok(files.length > 80, `only ${files.length} files`)
  const naming = files.filter((file) =>
    /\bnpx\b|\bnpm (?:start|run)\b/.test(readFileSync(`${root}/${file}`, 'utf8')),
  )
  assert.deepEqual(naming.toSorted(), ['page/api/command.ts', 'page/api/types.ts'])
})
