import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneLine } from '@custody/chains/terminal'
import { JsonNumber } from '@custody/request-auth'
import * as fc from '../../../../testing/property.ts'
import { csvLine } from './csv.ts'

type Cell = string | number | JsonNumber | null
const OPERATORS = '=+-@＝＋－＠﹦﹢﹣﹫−'
/** Characters that a spreadsheet may skip before a formula. */
const SKIPPED = /^[\s\p{Cc}\p{Cf}"'`“”‘’«»＂＇]*/u

/**
 * Splits one line into cells at a separator, according to RFC 4180. A quote within an unquoted cell
 * is an ordinary character.
 */
function split(text: string, separator: string): string[] {
  const cells: string[] = []
  let at = 0
  while (at <= text.length) {
    let cell = ''
    if (text[at] === '"') {
      for (at++; at < text.length && (text[at] !== '"' || text[at + 1] === '"'); at++) {
        cell += text[at]
        if (text[at] === '"') at++
      }
      at++
    }
    while (
      at < text.length &&
      text[at] !== separator &&
      !(separator !== ',' && '\r\n'.includes(text[at] as string))
    )
      cell += text[at++]
    cells.push(cell)
    at++
  }
  return cells
}
const lineOf = (cells: readonly Cell[]) => csvLine(cells).replace(/\r\n$/, '')
const isFormula = (cell: string) => {
  // A spreadsheet treats a cell that begins with an apostrophe as text.
  if (cell.startsWith("'")) return false
  return OPERATORS.includes(cell.replace(SKIPPED, '')[0] ?? 'x')
}

test('attack: a formula is exported as text, even after quotes, spaces or separators', () => {
  for (const [text, cell] of [
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['＝1', "'＝1"],
    ['＋1', "'＋1"],
    ['－1', "'－1"],
    ['＠A', "'＠A"],
    ['\t=1', '\\u0009=1'],
    ['\r1', '\\u000d1'],
    ['\n1', '\\u000a1'],
    ['  =1', "'  =1"],
    [' "=1', '\' "=1'],
    ["'=1", "''=1"],
    ['\u00a0\u200b\ufeff=1', "'\u00a0\u200b\ufeff=1"],
    ['rent;=1+1', "rent;'=1+1"],
    ['rent; "＝1', 'rent;\' "＝1'],
    ['a\n@b', 'a\\u000a@b'],
    [';;-1', ";;'-1"],
    [' ;\t=1', ' ;\\u0009=1'],
    ['a\t=1', 'a\\u0009=1'],
    ['\u001b[2J', '\\u001b[2J'],
    ['rent \u202egnp.exe', 'rent \\u202egnp.exe'],
    ['\u202e=1', '\\u202e=1'],
    ['a\u2028b\u0085c\ud800', 'a\\u2028b\\u0085c\\ud800'],
    ['rent; march', 'rent; march'],
    ['a=b', 'a=b'],
    ['a, -b', 'a, -b'],
    ['1-2', '1-2'],
    ['', ''],
  ] as const) {
    assert.deepEqual(split(lineOf(['id', text]), ','), ['id', cell], JSON.stringify(text))
    assert.ok(
      /^id,("|[^;\t\r\n"]*$)/.test(lineOf(['id', text])),
      `${JSON.stringify(text)} is quoted where it could be split`,
    )
  }
})

test('positive and negative numbers are exported as numbers', () => {
  assert.equal(
    csvLine(['id', new JsonNumber('-0.000000000000000001'), -5, null, new JsonNumber('1e-7')]),
    'id,-0.000000000000000001,-5,,1e-7\r\n',
  )
})

test('for any separator, no exported text starts a formula, and only apostrophes and escapes are added', () => {
  const odd = fc
    .array(
      fc.constantFrom(
        ...OPERATORS,
        ';',
        ',',
        '\t',
        '\r',
        '\n',
        '"',
        "'",
        ' ',
        '\u00a0',
        '\u200b',
        '“',
        '\u001b',
        '\u202e',
        '\u2028',
        '\ud800',
        'a',
        '1',
        '🦊',
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join(''))
  const text = fc.oneof(odd, fc.string({ unit: 'binary', maxLength: 20 }))
  const number = fc.integer().map((n) => new JsonNumber(String(n)))
  fc.assert(
    fc.property(fc.array(fc.oneof(text, number, fc.constant(null)), { maxLength: 6 }), (more) => {
      const cells: Cell[] = ['id', ...more]
      const line = lineOf(cells)
      const read = split(line, ',')
      assert.equal(line, oneLine(line), 'no unsafe character is left')
      assert.equal(read.length, cells.length)
      for (const [at, cell] of cells.entries()) {
        if (cell instanceof JsonNumber) assert.equal(read[at], cell.text)
        else {
          assert.equal(
            read[at]?.replaceAll("'", ''),
            oneLine((cell ?? '').toString()).replaceAll("'", ''),
          )
          assert.ok(
            !isFormula(read[at] as string) && !/^[\t\r\n]/.test(read[at] as string),
            JSON.stringify(read[at]),
          )
        }
      }
      for (const separator of [';', '\t']) {
        for (const cell of split(line, separator))
          assert.ok(!isFormula(cell), `${JSON.stringify(cell)} of ${JSON.stringify(line)}`)
      }
      // A spreadsheet may also ignore quotes.
      for (const cell of line.split(/[;\t\r\n]/))
        assert.ok(!isFormula(cell), `${JSON.stringify(cell)} of ${JSON.stringify(line)}`)
    }),
    { numRuns: 2000 },
  )
})

test('a long text of separators is processed in linear time', () => {
  const steps = '\n;\t '.repeat(50_000)
  assert.ok(csvLine(['id', steps]).length > steps.length)
})
