/**
 * A token of a module's source: word, string or punctuation. Comments, templates and regular
 * expressions are left out.
 */
export interface Token {
  kind: 'word' | 'string' | 'mark'
  text: string
}

const WORD = /[\w$#]/
/** Words after which a slash begins a regular expression and not a division. */
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

/** Reads the tokens of one source text. */
class Tokenizer {
  readonly #source: string
  #at = 0
  readonly #tokens: Token[] = []
  /** Open braces. A template's `${` is recorded so that its end continues the template. */
  readonly #braces: ('block' | 'template')[] = []

  constructor(source: string) {
    this.#source = source
  }

  read(): Token[] {
    while (this.#at < this.#source.length) this.#readNext()
    return this.#tokens
  }

  #readNext(): void {
    const char = this.#char
    if (/\s/.test(char)) this.#at++
    else if (this.#startsWith('//') || this.#startsWith('#!')) this.#skipLine()
    else if (this.#startsWith('/*')) this.#skipComment()
    else if (char === "'" || char === '"') this.#readString(char)
    else if (char === '`') {
      this.#at++
      this.#add('mark', '`')
      this.#skipTemplate()
    } else if (WORD.test(char)) this.#readWord()
    else if (char === '/' && beginsRegex(this.#tokens.at(-1))) this.#skipRegex()
    else this.#readMark(char)
  }

  /** The current character. */
  get #char(): string {
    return this.#source[this.#at] as string
  }

  get #isAtEnd(): boolean {
    return this.#at >= this.#source.length
  }

  #startsWith(text: string): boolean {
    return this.#source.startsWith(text, this.#at)
  }

  #add(kind: Token['kind'], text: string): void {
    this.#tokens.push({ kind, text })
  }

  #skipLine(): void {
    while (!this.#isAtEnd && this.#char !== '\n') this.#at++
  }

  #skipComment(): void {
    const end = this.#source.indexOf('*/', this.#at + 2)
    this.#at = end < 0 ? this.#source.length : end + 2
  }

  #readString(quote: string): void {
    const start = ++this.#at
    while (!this.#isAtEnd && this.#char !== quote && this.#char !== '\n')
      this.#at += this.#char === '\\' ? 2 : 1
    this.#add('string', this.#source.slice(start, this.#at))
    this.#at++
  }

  #readWord(): void {
    const start = this.#at
    while (!this.#isAtEnd && WORD.test(this.#char)) this.#at++
    this.#add('word', this.#source.slice(start, this.#at))
  }

  #readMark(char: string): void {
    this.#at++
    if (char === '{') this.#braces.push('block')
    if (char === '}' && this.#braces.pop() === 'template') this.#skipTemplate()
    else this.#add('mark', char)
  }

  /** Skips the text of a template up to its end or its next `${`. */
  #skipTemplate(): void {
    while (!this.#isAtEnd) {
      if (this.#char === '\\') this.#at += 2
      else if (this.#char === '`') {
        this.#at++
        return
      } else if (this.#startsWith('${')) {
        this.#at += 2
        this.#braces.push('template')
        return
      } else this.#at++
    }
  }

  #skipRegex(): void {
    this.#at++
    for (let inClass = false; !this.#isAtEnd && this.#char !== '\n'; this.#at++) {
      if (this.#char === '\\') this.#at++
      else if (this.#char === '[') inClass = true
      else if (this.#char === ']') inClass = false
      else if (this.#char === '/' && !inClass) break
    }
    this.#at++
    this.#add('mark', '/regex/')
  }
}

/** Returns the tokens of a module's source. */
export const tokens = (source: string): Token[] => new Tokenizer(source).read()

function beginsRegex(before: Token | undefined): boolean {
  if (!before) return true
  if (before.kind === 'word') return BEFORE_REGEX.has(before.text)
  return before.kind === 'mark' && !')]}`/regex/'.includes(before.text)
}

export interface Import {
  specifier: string
  /** The import is erased before execution: `import type`, `export type`. */
  typeOnly: boolean
}

/**
 * Returns the imports of a source text: `import … from 's'`, `import 's'`, `export … from 's'`,
 * `import('s')`, `require('s')`, `import.meta.resolve('s')` and the types `import('s').T`.
 */
export function importsIn(source: string): Import[] {
  const imports: Import[] = []
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
    imports.push({ specifier: token.text, typeOnly })
  })
  return imports
}
