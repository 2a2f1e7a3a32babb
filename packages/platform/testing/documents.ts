import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/**
 * A fenced block of a document, without its indentation. `place` contains the words after the
 * language, which name the host that runs the block.
 */
export interface Block {
  file: string
  line: number
  language: string
  place: string
  text: string
}

/**
 * Returns README.md, the pages of docs, and each package's README: the documents from which a
 * reader copies commands.
 */
export function documents(): string[] {
  // Excludes the tools that build the site. They are installed in this folder and contain their own
  // documents.
  const inDocs = globSync('**/*.md', {
    cwd: join(ROOT, 'docs'),
    exclude: (path) => path.startsWith('node_modules'),
  }).sort()
  const packages = readdirSync(join(ROOT, 'packages'))
    .sort()
    .map((name) => `packages/${name}/README.md`)
  const areas = globSync('packages/platform/src/*/README.md', { cwd: ROOT }).sort()
  const all = [
    'README.md',
    'ARCHITECTURE.md',
    'SECURITY.md',
    ...inDocs.map((name) => `docs/${name}`),
    ...packages,
    ...areas,
  ]
  return all.filter((name) =>
    readdirSync(join(ROOT, name, '..')).includes(name.split('/').at(-1) as string),
  )
}

/** Returns the rows of a document's tables as lists of cells, including the headings. */
export const tableRows = (markdown: string): string[][] =>
  markdown
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^[|\s:-]+$/.test(line))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )

export const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

const infoOf = (info: string): { language: string; place: string } => {
  const [language = '', ...place] = info.trim().split(' ')
  return { language, place: place.join(' ') }
}

export function blocksOf(file: string): Block[] {
  const blocks: Block[] = []
  let open: { block: Block; indent: number } | null = null
  for (const [at, line] of read(file).split('\n').entries()) {
    const fence = /^( *)```(.*)$/.exec(line)
    if (!fence) {
      if (open) open.block.text += `${line.slice(open.indent)}\n`
    } else if (open) {
      blocks.push(open.block)
      open = null
    } else
      open = {
        block: { file: relative('.', file), line: at + 1, ...infoOf(fence[2] as string), text: '' },
        indent: (fence[1] as string).length,
      }
  }
  if (open) throw new Error(`${file}: the block of line ${open.block.line} does not end`)
  return blocks
}

/**
 * Returns whether a page is about hosts with a bundle, where the command is `custody`. On all other
 * pages it is `npx custody`, as in a checkout.
 */
export const isOfBundles = (file: string): boolean =>
  file.startsWith('docs/production/') || file === 'docs/operating.md'

/**
 * Returns the commands in running text: text between backticks that begins with the operator's
 * command, without `npx`.
 */
export function inlineCommands(file: string): string[] {
  const prose = read(file).replaceAll(/^( *)```.*?^\1```/gms, '')
  const command = isOfBundles(file) ? /`(custody [^`]+)`/g : /`npx (custody [^`]+)`/g
  return [...prose.matchAll(command)].map(([, result]) => result as string)
}
