/**
 * Creates mutants of the database's functions, because Stryker does not support SQL and these
 * functions move the money. Each mutant is the text of a file with one change: an operator, a
 * condition, a number, or a removed statement.
 */
const SWAPS = [
  [/\band\b/gi, ['or']],
  [/\bor\b(?! replace)/gi, ['and']],
  [/\bif not found\b/gi, ['if found']],
  [/\bif found\b/gi, ['if not found']],
  [/\bif not (?!found|exists)/gi, ['if ']],
  [/(?<!not )\bexists \(/gi, ['not exists (']],
  [/\bnot exists \(/gi, ['exists (']],
  [/\bis not null\b/gi, ['is null']],
  [/\bis null\b/gi, ['is not null']],
  [/\bis distinct from\b/gi, ['is not distinct from']],
  [/<>/g, ['=']],
  [/(?<![:<>!|])=(?!>)/g, ['<>']],
  [/<=/g, ['<', '>']],
  [/>=(?!')/g, ['>', '<']],
  [/(?<![-<@#])(?<=\s)<(?=\s)/g, ['<=', '>=']],
  [/(?<![->=])(?<=\s)>(?=\s)/g, ['>=', '<=']],
  [/(?<=\s)\+(?=\s)/g, ['-']],
  [/(?<=\s)-(?=\s)/g, ['+']],
  [/(?<=\()-(?=\w)/g, ['']],
  [/\bleast\(/gi, ['greatest(']],
  [/\bgreatest\(/gi, ['least(']],
  [/\bsum\(/gi, ['max(']],
  [/\btrue\b/gi, ['false']],
  [/\bfalse\b/gi, ['true']],
  [/\bfor update\b(?! skip| of)/gi, ['']],
  [/(?<![\w.$])0(?![\w.])/g, ['1']],
  [/(?<![\w.$])1(?![\w.])/g, ['0', '2']],
]
/** Statements of plpgsql that can be removed without invalidating the function. */
const STATEMENT =
  /(?<=(?:^|;|\bthen|\belse|\bbegin|\bloop)\s*)(?:perform|insert into|update|delete from|raise exception)\b[^;]*;/gim

/**
 * Masks comments, strings and the head up to `begin`, which are not mutated: their characters
 * become blanks of the same length.
 */
function masked(text) {
  const blank = (match) => match.replaceAll(/[^\n]/g, ' ')
  return text
    .replaceAll(/--.*$/gm, blank)
    .replaceAll(/'(?:[^']|'')*'/g, (match) => `'${blank(match.slice(1, -1))}'`)
    .replace(/^[\s\S]*?\bas \$\$/i, blank)
}

/**
 * Returns the mutants of one function's file.
 * @returns {{ line: number, what: string, text: string }[]}
 */
export function mutantsOf(text) {
  const code = masked(text)
  const lineOf = (at) => text.slice(0, at).split('\n').length
  const made = []
  const add = (at, length, by) => {
    const was = text.slice(at, at + length)
    if (was === by) return
    const what =
      by === 'null;'
        ? `without: ${was.replaceAll(/\s+/g, ' ').slice(0, 90)}`
        : `${was.trim()} → ${by.trim() || 'nothing'}`
    made.push({ line: lineOf(at), what, text: text.slice(0, at) + by + text.slice(at + length) })
  }
  for (const [pattern, replacements] of SWAPS) {
    for (const match of code.matchAll(pattern))
      for (const by of replacements) add(match.index, match[0].length, by)
  }
  if (/language plpgsql/i.test(text))
    for (const match of code.matchAll(STATEMENT)) add(match.index, match[0].length, 'null;')
  return made.sort((a, b) => a.line - b.line)
}
