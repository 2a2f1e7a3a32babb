/**
 * Token of a module's source: a word, string or punctuation. Comments, templates and regular
 * expressions are left out.
 */
export interface Token {
  kind: 'word' | 'string' | 'mark'
  text: string
}

const WORD = /[\w$#]/
/** After these a slash begins a regular expression, not a division. */
const BEFORE_REGEX = new Set([
  'return',
  'typeof',
  'case',
  'of',
  'in',
  'delete',
  'void',
  'throw',
  'new',
  'await',
  'yield',
  'else',
  'do',
])

export function tokens(source: string): Token[] {
  const found: Token[] = []
  let at = 0
  /** Open braces; a template's `${` is remembered so that its end goes back into the template. */
  const braces: ('block' | 'template')[] = []
  const skipTemplate = () => {
    while (at < source.length) {
      if (source[at] === '\\') at += 2
      else if (source[at] === '`') {
        at++
        return
      } else if (source.startsWith('${', at)) {
        at += 2
        braces.push('template')
        return
      } else at++
    }
  }
  while (at < source.length) {
    const char = source[at] as string
    if (/\s/.test(char)) at++
    else if (source.startsWith('//', at) || source.startsWith('#!', at)) {
      while (at < source.length && source[at] !== '\n') at++
    } else if (source.startsWith('/*', at)) {
      const end = source.indexOf('*/', at + 2)
      at = end < 0 ? source.length : end + 2
    } else if (char === "'" || char === '"') {
      const start = ++at
      while (at < source.length && source[at] !== char && source[at] !== '\n')
        at += source[at] === '\\' ? 2 : 1
      found.push({ kind: 'string', text: source.slice(start, at) })
      at++
    } else if (char === '`') {
      at++
      found.push({ kind: 'mark', text: '`' })
      skipTemplate()
    } else if (WORD.test(char)) {
      const start = at
      while (at < source.length && WORD.test(source[at] as string)) at++
      found.push({ kind: 'word', text: source.slice(start, at) })
    } else if (char === '/' && beginsRegex(found.at(-1))) {
      at++
      for (let inClass = false; at < source.length && source[at] !== '\n'; at++) {
        if (source[at] === '\\') at++
        else if (source[at] === '[') inClass = true
        else if (source[at] === ']') inClass = false
        else if (source[at] === '/' && !inClass) break
      }
      at++
      found.push({ kind: 'mark', text: '/regex/' })
    } else {
      at++
      if (char === '{') braces.push('block')
      if (char === '}' && braces.pop() === 'template') skipTemplate()
      else found.push({ kind: 'mark', text: char })
    }
  }
  return found
}

function beginsRegex(before: Token | undefined): boolean {
  if (!before) return true
  if (before.kind === 'word') return BEFORE_REGEX.has(before.text)
  return before.kind === 'mark' && !')]}`/regex/'.includes(before.text)
}

export interface Import {
  specifier: string
  /** Erased before anything runs: `import type`, `export type`. */ typeOnly: boolean
}

/**
 * What a source text imports: `import … from 's'`, `import 's'`, `export … from 's'`,
 * `import('s')`, `require('s')`, `import.meta.resolve('s')` and the types `import('s').T`.
 */
export function importsIn(source: string): Import[] {
  const found: Import[] = []
  const all = tokens(source)
  all.forEach((token, at) => {
    if (token.kind !== 'string') return
    const [second, before] = [all[at - 2], all[at - 1]]
    const statement =
      before?.kind === 'word' && (before.text === 'from' || before.text === 'import')
    const call =
      before?.text === '(' &&
      second?.kind === 'word' &&
      ['import', 'require', 'resolve'].includes(second.text)
    if (!statement && !call) return
    let typeOnly = false
    if (before.text === 'from') {
      let start = at - 2
      while (start > 0 && !['import', 'export'].includes(all[start]?.text as string)) start--
      // `import type from 's'` imports a value named type.
      typeOnly = all[start + 1]?.text === 'type' && start + 2 < at - 1
    }
    found.push({ specifier: token.text, typeOnly })
  })
  return found
}
