import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '..')

/**
 * Uses of values of coins. A value that the platform sends could belong to another amount than the
 * one beside it, so only `worth.tsx` displays values, and computes them from that amount.
 */
const VALUES = [
  [/\bamount_in_usd\b/, ['worth/worth.tsx']],
  [/\bworth\(/, ['api/decimal.ts', 'worth/worth.tsx']],
  [/\busdShort\b/, ['amounts.ts', 'parts/values.tsx', 'pages/overview.tsx']],
  [/(?:\.usd\b|\busd: )/, []],
  [/<(?:Usd|Dollars) [^>]*(?:worth|price|usd\b(?!\())/i, ['pages/overview.tsx', 'worth/worth.tsx']],
] as const

const uses = (files: readonly (readonly [string, string])[]): string[] =>
  files.flatMap(([file, text]) =>
    text
      .split('\n')
      .flatMap((line, at) =>
        VALUES.filter(
          ([pattern, allowed]) =>
            pattern.test(line) && !allowed.some((name) => name === file) && !/^\s*\/?\*/.test(line),
        ).map(([pattern]) => `${file}:${at + 1}: ${pattern.source}: ${line.trim()}`),
      ),
  )

const files = globSync('**/*.{ts,tsx}', { cwd: ROOT })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const)

test('only worth.tsx displays the values of coins, computed from the amount beside them', () => {
  assert.ok(files.length > 80, `${files.length} files`)
  assert.deepEqual(uses(files), [])
})

test('refuses a value that comes from another reading than its amount', () => {
  const shown = [
    'note: worth.usd === null ? null : <Usd value={worth.usd} />',
    'cell: ({ usd: value }) => <Dollars value={value} />',
    '<Dollars value={transaction.amount_in_usd} /> at the time',
  ]
  for (const line of shown)
    assert.notDeepEqual(uses([['pages/wallet.tsx', line]]), [], `${line} is not refused`)
})
