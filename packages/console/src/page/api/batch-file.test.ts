// Parses a file of transfers, line by line.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson, JsonNumber } from '@custody/request-auth/web'
import { COLUMNS, suggestColumn } from './batch-columns.ts'
import { bodyOf, LINES_MAX, readBatch, totals } from './batch-file.ts'
import type { Line } from './batch-line.ts'
import {
  amountBy,
  decimalMarkOf,
  decodeFile,
  rowsOf,
  scientific,
  separatorOf,
  type DecimalMark,
} from './csv.ts'
import { decimal, units, worth } from './decimal.ts'
import { decode, encode, exact, pretty } from './wire.ts'

const ASSETS = new Map([
  ['ETH', { decimals: 18, takes_tag: false }],
  ['XRP', { decimals: 6, takes_tag: true }],
])
const read = async (text: string) => readBatch(text, ASSETS).lines
const HEAD = 'asset,amount,destination_address,address_tag,memo,fee_level\n'
const problemsOf = async (line: string) => (await read(HEAD + line))[0]?.problems

test('parses rows by RFC 4180, with quotes, line breaks, empty lines and a byte order mark', () => {
  assert.deepEqual(rowsOf('\uFEFFa,"b ""c"", d",e\r\n\r\n"two\nlines",2\n', ','), [
    { number: 1, fields: ['a', 'b "c", d', 'e'] },
    { number: 3, fields: ['two\nlines', '2'] },
  ])
  // Only the separator of the file divides fields.
  assert.deepEqual(
    rowsOf('a;b,1\tc', ';').map(({ fields }) => fields),
    [['a', 'b,1\tc']],
  )
  assert.deepEqual(rowsOf('sep=;\r\na;b\r\n', ';'), [{ number: 2, fields: ['a', 'b'] }])
  assert.deepEqual(rowsOf('', ','), [])
})

/** Returns a file as Excel writes it in a country with this separator. */
const excel = (separator: string, ...rows: string[][]) =>
  [['asset', 'amount', 'destination_address', 'memo'], ...rows]
    .map((row) => row.join(separator))
    .join('\r\n')
const understood = (text: string, mark?: DecimalMark) => {
  const { lines, ...form } = readBatch(text, ASSETS, mark)
  return {
    ...form,
    amounts: lines.map(({ amount }) => amount),
    problems: lines.flatMap(({ problems }) => problems),
    notes: lines.flatMap(({ notes }) => notes),
  }
}

test('detects the column separator and decimal mark of spreadsheets of other countries', () => {
  assert.deepEqual(
    understood(
      excel(';', ['ETH', '0,25', '0xab', 'Miete, März'], ['ETH', '1.234,5', '0xcd', '']),
      undefined,
    ),
    {
      separator: ';',
      mark: ',',
      amounts: ['0.25', '1234.5'],
      problems: [],
      notes: ['“1.234,5” is read as 1234.5'],
    },
  )
  const french = excel(';', ['ETH', '1\u202f234,5', '0xab', 'Loyer'], ['ETH', '12,25', '0xcd', ''])
  assert.deepEqual(understood(french).amounts, ['1234.5', '12.25'])
  const swiss = excel(';', ['ETH', "1'234.50", '0xab', ''], ['ETH', '0.125', '0xcd', ''])
  assert.deepEqual([understood(swiss).mark, understood(swiss).amounts], ['.', ['1234.50', '0.125']])
  assert.deepEqual(understood(excel('\t', ['ETH', '0,5', '0xab', 'a; b, c'])), {
    separator: '\t',
    mark: ',',
    amounts: ['0.5'],
    problems: [],
    notes: [],
  })
  assert.deepEqual(understood(excel(',', ['ETH', '1.234', '0xab', ''])), {
    separator: ',',
    mark: '.',
    amounts: ['1.234'],
    problems: [],
    notes: [],
  })
  assert.equal(understood(`sep=;\r\n${excel(';', ['ETH', '0,5', '0xab', ''])}`).separator, ';')
  assert.deepEqual(
    understood(excel(';', ['ETH', '7', '0xab', ''], ['ETH', '1000', '0xab', ''])).amounts,
    ['7', '1000'],
  )
})

test('an amount that is valid with either decimal mark is read as the user chooses', () => {
  const both = excel(';', ['ETH', '1.234', '0xab', ''], ['ETH', '5', '0xcd', ''])
  assert.deepEqual(understood(both), {
    separator: ';',
    mark: null,
    amounts: ['1.234', '5'],
    problems: ['amount: “1.234” is 1.234 or 1234: choose the decimal mark'],
    notes: [],
  })
  assert.deepEqual(understood(both, '.').amounts, ['1.234', '5'])
  assert.deepEqual(understood(both, ','), {
    separator: ';',
    mark: ',',
    amounts: ['1234', '5'],
    problems: [],
    notes: ['“1.234” is read as 1234'],
  })
  // In a file that separates fields by commas, a comma in an amount is never read as a thousands
  // separator.
  const quoted = excel(',', ['ETH', '"1,500"', '0xab', ''])
  assert.match(
    String(understood(quoted).problems),
    /“1,500” has thousands separators, or a decimal comma/,
  )
  assert.deepEqual(
    [understood(quoted, '.').amounts, understood(quoted, ',').amounts],
    [['1500'], ['1.500']],
  )
})

test('accepts digit groups only with three digits, one separator, and no leading zero', () => {
  const by = (text: string, mark: DecimalMark) => amountBy(text, mark)?.amount ?? null
  for (const [text, point, comma] of [
    ['1,5', null, '1.5'],
    ['1,000', '1000', '1.000'],
    ['0,125', null, '0.125'],
    ['1,000.50', '1000.50', null],
    ['1.000,50', null, '1000.50'],
    ['1.000.000', null, '1000000'],
    ['1,23,456', null, null],
    ['1.2.3', null, null],
    ['1 000', '1000', '1000'],
    ["1'000 000", null, null],
    ['1,0000', null, '1.0000'],
    ['12,34.5', null, null],
    ['.5', '0.5', null],
    [',5', null, '0.5'],
    ['5.', '5', null],
    ['007', '7', '7'],
    ['', null, null],
    ['-1', null, null],
    ['1e3', null, null],
    ['1,23E+05', null, null],
    ['.', null, null],
    ['٣', null, null],
  ] as const)
    assert.deepEqual([by(text, '.'), by(text, ',')], [point, comma], text)
  assert.deepEqual(
    [decimalMarkOf(['1', 'two'], ';'), decimalMarkOf(['1,5', '2,5', '1.5'], '\t')],
    ['.', ','],
  )
})

test('refuses long tags that a spreadsheet has rounded', async () => {
  assert.match(
    String(await problemsOf('XRP,1,rA,3.04E+09,,')),
    /a spreadsheet has replaced its digits/,
  )
  assert.deepEqual(await problemsOf('XRP,1,rA,3042817,,'), [])
})

test('reads all encodings of Excel: UTF-8 with byte order mark, UTF-16, and Windows-1252', () => {
  const text = 'Miete März'
  const wide = (isLittle: boolean) =>
    Uint8Array.from(
      `\uFEFF${text}`
        .split('')
        .flatMap((char) => (isLittle ? [char.charCodeAt(0), 0] : [0, char.charCodeAt(0)]))
        .map((byte, at, all) => (byte > 255 ? (isLittle ? 0xff : 0xff) : (all[at] as number))),
    )
  const marked = (isLittle: boolean) => {
    const bytes = wide(isLittle)
    bytes.set(isLittle ? [0xff, 0xfe] : [0xfe, 0xff])
    return bytes
  }
  for (const [bytes, encoding] of [
    [new TextEncoder().encode(`\uFEFF${text}`), 'UTF-8'],
    [new TextEncoder().encode(text), 'UTF-8'],
    [Uint8Array.from(Buffer.from(text, 'latin1')), 'Windows-1252'],
    [marked(true), 'UTF-16'],
    [marked(false), 'UTF-16'],
  ] as const)
    assert.deepEqual(decodeFile(bytes), { text, encoding })
  assert.equal(
    separatorOf('\uFEFFasset;amount\n', (name) => ['asset', 'amount'].includes(name)),
    ';',
  )
})

test('sends a line with all its digits and with the sequence_id of its plan', async () => {
  const text = `${HEAD}ETH,0.000000000000000001,0xab,,"one, two",high\nXRP,12,rA,7,,\n`
  const lines = await read(text)
  assert.deepEqual(await read(text), lines)
  const [first] = lines as [Line, Line]
  first.plan = { standing: 'new', earlier: [], sequence_id: '2026-03-017' }
  assert.equal(
    encode(bodyOf(first)),
    `{"asset":"ETH","amount":0.000000000000000001,"destination_address":"0xab","destination_type":"EXTERNAL",` +
      `"source_type":"INTERNAL","sequence_id":"2026-03-017","memo":"one, two","fee_level":"high"}`,
  )
  assert.deepEqual(
    totals(lines, ASSETS, [
      { asset: 'ETH', balance: '0.000000000000000001' },
      { asset: 'XRP', balance: '11.999999' },
    ]),
    [
      {
        asset: 'ETH',
        count: 1,
        total: '0.000000000000000001',
        balance: '0.000000000000000001',
        isEnough: true,
      },
      { asset: 'XRP', count: 1, total: '12', balance: '11.999999', isEnough: false },
    ],
  )
})

test('reports each invalid line with its error', async () => {
  assert.deepEqual(await problemsOf('ETH,1,0xab,,,'), [])
  assert.match(String(await problemsOf('DOGGO,1,0xab,,,')), /no asset “DOGGO”/)
  assert.match(String(await problemsOf('XRP,0.0000001,rA,1,,')), /more than 6 decimal places/)
  assert.match(String(await problemsOf('ETH,"1,000",0xab,,,')), /thousands separators/)
  for (const amount of ['0', '0.0'])
    assert.match(String(await problemsOf(`ETH,${amount},0xab,,,`)), /amount: “0(\.0)?” is zero/)
  for (const amount of ['', '-1', '1e3', 'one', '0x10'])
    assert.match(String(await problemsOf(`ETH,${amount},0xab,,,`)), /is no amount/, amount)
  assert.match(String(await problemsOf('ETH,1,,,,')), /destination_address: is empty/)
  assert.match(String(await problemsOf('ETH,1,0xab,,,soon')), /fee_level/)
  assert.match(String(await problemsOf('ETH,1,0xab,,,low,more')), /more fields/)
  const twice = await read(`${HEAD}ETH,1,0xab,,a,\nETH,1.0,0xab,,b,\nETH,1,0xab,,c,`)
  assert.deepEqual(
    twice.map(({ notes }) => notes),
    [[], [], ['the same payment as line 2']],
  )
})

test("a reference must be unique in its file and differ from the panel's own names", async () => {
  const problems = async (...references: string[]) =>
    (
      await read(
        `asset,amount,destination_address,reference\n${references.map((each) => `ETH,1,0xab,${each}\n`).join('')}`,
      )
    ).map((line) => line.problems)
  assert.deepEqual(await problems('a', 'b', '', ''), [[], [], [], []])
  assert.deepEqual(await problems('a', 'b', 'a'), [[], [], ['reference: is that of line 2 too']])
  for (const [wrong, says] of [
    ['batch-7', /must not begin/],
    ['Batch-7', /must not begin/],
    ['a#2', /must not end/],
    ['x'.repeat(101), /more than 100/],
  ] as const)
    assert.match(String(await problems(wrong)), says, wrong)
  assert.deepEqual(await problems('x'.repeat(100), 'a#b', 'a batch-1'), [[], [], []])
})

test('reports a missing tag, and a tag for a network without tags', async () => {
  const tagless = async (text: string) =>
    (await read(text)).map((line) => [line.hasNoTag, line.hasTagColumn])
  assert.deepEqual(await tagless(`${HEAD}XRP,1,rA,,,\nXRP,1,rA,0,,\nETH,1,0xab,,,`), [
    [true, true],
    [false, true],
    [false, true],
  ])
  assert.deepEqual(await tagless('asset,amount,destination_address\nXRP,1,rA\n'), [[true, false]])
  assert.match(String(await problemsOf('ETH,1,0xab,7,,')), /ETH has no address_tag/)
})

test('refuses an invalid file with an error sentence', async () => {
  await assert.rejects(read(''), /empty/)
  await assert.rejects(read('asset,amount\nETH,1'), /destination_address is missing/)
  await assert.rejects(read(`${HEAD.trim()},wallet\n`), /no column “wallet”/)
  await assert.rejects(read(HEAD), /no line below/)
  await assert.rejects(read(HEAD + 'ETH,1,0xab,,,\n'.repeat(LINES_MAX + 1)), /at most 1000/)
})

test('converts decimals to whole smallest units, and parses or refuses entered text', () => {
  assert.equal(units('1.50', 18), 1_500_000_000_000_000_000n)
  assert.equal(units('0.1', 0), null)
  assert.equal(units('1e3', 18), null)
  assert.deepEqual(
    [decimal(5n, 18), decimal(-1_500_000n, 6), decimal(0n, 8), decimal(7n, 0)],
    ['0.000000000000000005', '-1.5', '0', '7'],
  )
  assert.deepEqual(
    [worth('1.25', '3000'), worth(`0.${'0'.repeat(36)}1`, '1'), worth('0.019', '1')],
    ['3750', null, '0.019'],
  )
  assert.deepEqual(
    [' 1 000.50 ', '.5', '007', "1'000"].map((text) => exact(text)?.text),
    ['1000.50', '0.5', '7', '1000'],
  )
  // Many countries use the comma as decimal point, so 1,5 must never become 15.
  for (const text of ['', '-1', '1e3', '1.2.3', 'Infinity', '1,5', '1,000', '1,000.5'])
    assert.equal(exact(text), null, text)
  const value = { a: new JsonNumber('1.10'), b: [{ c: 'x' }, []], d: {} }
  assert.deepEqual(parseJson(pretty(value)), value)
})

test('amounts of a response keep every digit, and counts are numbers', () => {
  assert.deepEqual(
    decode(
      '{"data":[{"total":0.100000000000000001,"confirmations":3,"path":[1,0]}],"page":1,"limit":50,"total":7,"counts":{"pending":2}}',
    ),
    {
      data: [{ total: '0.100000000000000001', confirmations: 3, path: [1, 0] }],
      page: 1,
      limit: 50,
      total: 7,
      counts: { pending: 2 },
    },
  )
})

test('names the column, the text and an example if a spreadsheet has shortened an amount', async () => {
  for (const [written, digits] of [
    ['1.5E-05', '0.000015'],
    ['1e-3', '0.001'],
    ['1,5E-05', '0.000015'],
    ['1.23E+12', '1230000000000'],
    ['1.25e1', '12.5'],
    ['2E0', '2'],
  ] as const) {
    assert.equal(scientific(written), digits, written)
    for (const separator of [';', ',']) {
      const field = separator === ',' ? `"${written}"` : written
      const { problems, amounts } = understood(excel(separator, ['ETH', field, '0xab', '']))
      assert.equal(problems.length, 1)
      assert.match(
        problems[0] ?? '',
        new RegExp(
          `^amount: “${written.replaceAll(/[.+]/g, String.raw`\$&`)}” is no amount; .*for example ${digits.replace('.', String.raw`\.`)}$`,
        ),
      )
      assert.deepEqual(amounts, [written], 'the value is not replaced')
    }
  }
  for (const text of ['1', '15E-05', 'E-5', '1.5E', '0x1e5', '1.5E-100'])
    assert.equal(scientific(text), null, text)
})

test('never reads a decimal comma by itself, and says how to write the amount', async () => {
  assert.deepEqual(understood(excel(',', ['ETH', '"1,5"', '0xab', ''])).problems, [
    'amount: “1,5” is no amount; its decimal mark differs from that of the file: choose the decimal mark, or write it as the others, for example 1.5',
  ])
  assert.deepEqual(
    understood(
      excel(
        ';',
        ['ETH', '1,5', '0xab', ''],
        ['ETH', '2,5', '0xab', ''],
        ['ETH', '3.25', '0xab', ''],
      ),
    ).problems,
    [
      'amount: “3.25” is no amount; its decimal mark differs from that of the file: choose the decimal mark, or write it as the others, for example 3,25',
    ],
  )
})

test('each problem of a line names its column, what was found and what is allowed', async () => {
  for (const [line, problem] of [
    ['eth,1,0xab,,,', 'asset: no asset “eth”; write “ETH”'],
    [
      ',1,0xab,,,',
      'asset: is empty; write the name as the page Wallets shows it, for example ETH or USDT_ETH',
    ],
    ['ETH,one,0xab,,,', 'amount: “one” is no amount; write digits only, for example 1250.75'],
    ['XRP,0.0000001,rA,1,,', 'amount: “0.0000001” has more than 6 decimal places of XRP'],
    [
      'ETH,1,0xab,,,soon',
      'fee_level: “soon” is not allowed; write low, medium or high, or leave it empty',
    ],
    ['ETH,1,0xab,7,,', 'address_tag: ETH has no address_tag; leave “7” out'],
    [
      'ETH,1,0xab,,rent, March,low',
      'fee_level: “March” is not allowed; write low, medium or high, or leave it empty',
    ],
  ] as const)
    assert.equal((await problemsOf(line))?.[0], problem, line)
  assert.match(
    String(await problemsOf('ETH,1,0xab,,rent, March,low')),
    /more fields than columns, from “low”; .* "rent, March"/,
  )
})

test('a quotation mark that is never closed refuses the file, because it would hide payments', async () => {
  await assert.rejects(
    read(`${HEAD}ETH,1,0xab,,a,\nETH,1,0xab,,"rent,\nETH,2,0xab,,b,\n`),
    /^TypeError: Line 3: a field begins with a quotation mark \("\) that is never closed/,
  )
})

test('says which columns are unknown, missing, repeated or nameless, and what they should be', async () => {
  const refusal = async (head: string) => {
    const error = await read(`${head}\nETH,1,0xab\n`).catch((reason: unknown) => reason)
    return error instanceof TypeError ? error.message : assert.fail(`${head} was accepted`)
  }
  const rest = ` Columns: ${COLUMNS.join(', ')}. Example: asset,amount,destination_address`
  assert.equal(
    await refusal('Währung;Betrag;Empfänger'),
    'Line 1: The first line must name the columns; asset, amount, destination_address are missing. ' +
      'There is no column “währung”: rename it to “asset”. There is no column “betrag”: rename it to “amount”. ' +
      `There is no column “empfänger”: rename it to “destination_address”.${rest}`,
  )
  assert.equal(
    await refusal('asset,amount,destination_address,to'),
    `Line 1: There is no column “to”.${rest}`,
  )
  assert.equal(
    await refusal('asset,amount,amount,destination_address'),
    `Line 1: The column “amount” appears twice.${rest}`,
  )
  assert.equal(
    await refusal('asset,,amount,destination_address'),
    `Line 1: Column 2 has no name.${rest}`,
  )
  for (const [name, column] of [
    ['Destination Tag', 'address_tag'],
    ['adress_tag', 'address_tag'],
    ['Wallet address', 'destination_address'],
    ['destination_adress', 'destination_address'],
    ['ammount', 'amount'],
    ['sequence_id', 'reference'],
    ['Verwendungszweck', 'memo'],
    ['note', 'memo'],
    ['priority', 'fee_level'],
    ['x', null],
    ['', null],
    ['birthday', null],
    ['a'.repeat(100_000), null],
  ] as const)
    assert.equal(suggestColumn(name), column, name.slice(0, 30))
  for (const column of COLUMNS) assert.equal(suggestColumn(column), column)
  // Spreadsheets end lines with the separators of empty columns.
  const lines = await read('asset,amount,destination_address,,\nETH,1,0xab,,\n')
  assert.deepEqual(lines[0]?.problems, [])
})

test('recognizes files that are no CSV files, and says how to get one', () => {
  const bytesOf = (text: string) => new TextEncoder().encode(text)
  for (const [bytes, message] of [
    [Uint8Array.of(0x50, 0x4b, 3, 4, 20, 0, 6, 0, 8), /workbook \(XLSX.*“CSV UTF-8”/],
    [Uint8Array.of(0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, 0), /XLS\).*“CSV UTF-8”/],
    [Uint8Array.of(0x1f, 0x8b, 8, 0), /gzip/],
    [bytesOf('%PDF-1.7'), /PDF/],
    [bytesOf('<?xml version="1.0"?><Document/>'), /XML file.*pain\.001/],
    [bytesOf('\uFEFF\r\n<Document xmlns="urn:iso">'), /XML file/],
    [bytesOf('<!DOCTYPE html><html>'), /HTML table/],
    [bytesOf('<table><tr>'), /HTML table/],
    [bytesOf('[{"asset":"ETH"}]'), /JSON/],
    [bytesOf('a\0s\0'), /not a text file/],
  ] as const)
    assert.throws(() => decodeFile(bytes), message)
})

test('a file with a byte order mark in each encoding gives the same transfers', () => {
  const text = `asset,amount,destination_address,memo\nETH,1,0xab,März\n`
  const utf16 = Uint8Array.from(Buffer.from(`\uFEFF${text}`, 'utf16le'))
  for (const bytes of [
    new TextEncoder().encode(text),
    new TextEncoder().encode(`\uFEFF${text}`),
    utf16,
  ])
    assert.deepEqual(readBatch(decodeFile(bytes).text, ASSETS), readBatch(text, ASSETS))
  assert.equal(readBatch(`\uFEFF${text}`, ASSETS).lines.length, 1)
})
