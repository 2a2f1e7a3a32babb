import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSync } from 'vite'
import { find, json, read } from '../testing/tree.ts'

// The language of comments and test titles: the same banned words as in the documents, which
// scripts/lint/prose.mjs checks.

const banned = Object.entries(json<Record<string, string>>('scripts/lint/banned-words.json'))
const pattern = new RegExp(`\\b(?:${banned.map(([words]) => words).join('|')})\\b`, 'i')

const SOURCES = find([
  'packages/*/{src,testing,e2e,browser,drills,bench,scripts,bin}/**/*.{ts,tsx,mts,mjs}',
  'scripts/**/*.mjs',
  '{test,testing}/*.ts',
  'examples/**/*.{ts,mjs}',
]).filter((path) => path !== 'packages/client/src/api.d.ts' && path !== 'test/language.test.ts')

interface Found {
  line: number
  text: string
}

const lineOf = (source: string, at: number) => source.slice(0, at).split('\n').length

/** Comments and the titles of tests that contain a banned word, also across a line break. */
function bannedIn(path: string, source: string): Found[] {
  const { comments } = parseSync(path, source)
  const texts = comments.map(({ value, start }) => ({
    line: lineOf(source, start),
    text: value.replaceAll(/`[^`]*`/g, '').replaceAll(/\s*\n[\s*/]*/g, ' '),
  }))
  for (const match of source.matchAll(
    /\b(?:test|it|describe)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g,
  ))
    texts.push({ line: lineOf(source, match.index), text: match[2] ?? '' })
  return texts.filter(({ text }) => pattern.test(text))
}

test('the check finds banned words in comments, across lines, and in test titles', () => {
  const words = ['anew', 'for ever']
  const source = [
    `// Reads it ${words[0]}.`,
    '/**',
    ' * Waits for',
    ' * ever.',
    ' */',
    `const text = '${words[0]}'`,
    `test('it is read ${words[0]}', () => {})`,
  ].join('\n')
  assert.deepEqual(
    bannedIn('x.ts', source).map(({ line }) => line),
    [1, 2, 7],
  )
})

test('no comment and no test title contains a banned word', () => {
  assert.ok(SOURCES.length > 1000)
  assert.deepEqual(
    SOURCES.flatMap((path) =>
      bannedIn(path, read(path)).map(({ line, text }) => {
        const word = pattern.exec(text)?.[0].toLowerCase() ?? ''
        const use = banned.find(([words]) => new RegExp(`^${words}$`).test(word))?.[1]
        return `${path}:${line}: "${word}": use ${use}`
      }),
    ),
    [],
  )
})
