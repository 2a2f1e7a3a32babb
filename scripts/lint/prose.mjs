// node scripts/lint/prose.mjs [FILE…]    checks the language of the documents: no banned words, at
//                                        most 30 words in the average sentence of a page, and no
//                                        sentence of more than 60
// Without FILE: every Markdown file of the repository, the texts of docs/openapi.json, and the help
// of the commands. Comments and test titles are checked by test/language.test.ts.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TextlintKernel } from '@textlint/kernel'
import markdown from '@textlint/textlint-plugin-markdown'
import { split } from 'sentence-splitter'
import { root } from '../pinned-node.mjs'

const AVERAGE_MAX = 30
const SENTENCE_MAX = 60
/** Pages with fewer sentences have no meaningful average. */
const AVERAGE_FROM = 5

const banned = Object.entries(
  JSON.parse(readFileSync(new URL('banned-words.json', import.meta.url), 'utf8')),
).map(([words, use]) => ({ words, use, pattern: new RegExp(`\\b${words}\\b`, 'gi') }))

const wordsOf = (sentence) => sentence.split(/\s+/).filter((word) => /\w/.test(word)).length

/** Rule of textlint: the words of plain text, code left out. */
function bannedWords({ Syntax, RuleError, report, locator }) {
  return {
    [Syntax.Str](node) {
      for (const { words, use, pattern } of banned)
        for (const { index } of node.value.matchAll(pattern)) {
          const padding = locator.at(index)
          report(node, new RuleError(`"${words}": use ${use}`, { padding }))
        }
    },
  }
}

/** Rule of textlint: the length of sentences of paragraphs. A table's cell is not a paragraph. */
function sentenceLength({ Syntax, RuleError, report, getSource }) {
  const lengths = []
  return {
    [Syntax.Paragraph](node) {
      // Code and links count as one word each.
      const text = getSource(node)
        .replaceAll(/`[^`]*`/g, 'code')
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      for (const { type, raw } of split(text)) {
        if (type !== 'Sentence') continue
        const length = wordsOf(raw)
        lengths.push(length)
        if (length > SENTENCE_MAX)
          report(node, new RuleError(`a sentence has ${length} words: ${raw.slice(0, 80)}…`))
      }
    },
    [Syntax.DocumentExit](node) {
      if (lengths.length < AVERAGE_FROM) return
      const average = lengths.reduce((sum, each) => sum + each, 0) / lengths.length
      if (average > AVERAGE_MAX)
        report(node, new RuleError(`the average sentence has ${Math.round(average)} words`))
    },
  }
}

/** Every text below a value whose key is accepted, at any depth. */
function textsOf(value, accepts) {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) =>
    typeof each === 'string' ? (accepts(key) ? [each] : []) : textsOf(each, accepts),
  )
}
/** One paragraph for each different text. */
const paragraphs = (texts) => [...new Set(texts)].join('\n\n')
const DESCRIPTIONS = new Set(['summary', 'description', 'title'])

/** Every document: its name and its Markdown. */
async function documents() {
  const files = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '' && existsSync(join(root, path)))
  const openapi = JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8'))
  const { COMMANDS } = await import('../../packages/platform/src/server/operator/cli/commands.ts')
  return [
    ...files.map((path) => [path, readFileSync(join(root, path), 'utf8')]),
    ['docs/openapi.json', paragraphs(textsOf(openapi, (key) => DESCRIPTIONS.has(key)))],
    ['npx custody --help', paragraphs(textsOf(COMMANDS, (key) => key !== 'usage'))],
  ]
}

const names = process.argv.slice(2)
const texts =
  names.length > 0
    ? names.map((path) => [path, readFileSync(join(root, path), 'utf8')])
    : await documents()
const kernel = new TextlintKernel()
let problems = 0
for (const [name, text] of texts) {
  const { messages } = await kernel.lintText(text, {
    ext: '.md',
    filePath: name,
    plugins: [{ pluginId: 'markdown', plugin: markdown.default }],
    rules: [
      { ruleId: 'banned-words', rule: bannedWords },
      { ruleId: 'sentence-length', rule: sentenceLength },
    ],
  })
  problems += messages.length
  for (const { line, column, message } of messages)
    console.log(`${name}:${line}:${column} ${message}`)
}
console.log(
  problems === 0
    ? `prose: ${texts.length} documents are plain`
    : `prose: ${problems} problems; CONTRIBUTING.md describes the language`,
)
process.exit(problems === 0 ? 0 : 1)
