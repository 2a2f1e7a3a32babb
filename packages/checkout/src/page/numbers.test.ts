// Amounts as the page displays them in its six languages, compared with the built-in formatter for
// digit strings.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { LANGUAGES } from './language.ts'
import { numbersOf } from './numbers.ts'

const plain = (text: string) =>
  text.replaceAll(/[\u00a0\u202f]/g, ' ').replaceAll(/[\u200e\u200f]/g, '')
const languages = Object.keys(LANGUAGES) as (keyof typeof LANGUAGES)[]

test('formats amounts, currencies and counters with the separators of each language', () => {
  const shown = languages.map((language) => {
    const { decimal, money, whole } = numbersOf(language)
    return [
      language,
      ...[decimal('1234567.000000000000000001'), money('12345.5', 'EUR'), whole(12_345)].map(plain),
    ]
  })
  assert.deepEqual(shown, [
    ['en', '1,234,567.000000000000000001', '€12,345.50', '12,345'],
    ['de', '1.234.567,000000000000000001', '12.345,50 €', '12.345'],
    ['es', '1.234.567,000000000000000001', '12.345,50 €', '12.345'],
    ['ru', '1 234 567,000000000000000001', '12 345,50 €', '12 345'],
    ['zh', '1,234,567.000000000000000001', '€12,345.50', '12,345'],
    ['ar', '1,234,567.000000000000000001', '12,345.50 €', '12,345'],
  ])
})

test('an amount of money has all its digits, and at least the decimals of its currency', () => {
  const { money } = numbersOf('en')
  assert.deepEqual(
    [
      ['19.9', 'USD'],
      ['10.005', 'USD'],
      ['0.000001', 'USD'],
      ['1200', 'JPY'],
      ['1200.5', 'JPY'],
      ['60000.123456789012', 'EUR'],
    ].map(([amount, currency]) => money(amount as string, currency as string)),
    ['$19.90', '$10.005', '$0.000001', '¥1,200', '¥1,200.5', '€60,000.123456789012'],
  )
})

test('displays an invalid decimal or currency unchanged', () => {
  const { decimal, money } = numbersOf('de')
  assert.deepEqual(['', '-1', '1e9', 'abc', '1.', '.5', '１２'].map(decimal), [
    '',
    '-1',
    '1e9',
    'abc',
    '1.',
    '.5',
    '１２',
  ])
  assert.equal(money('1234.5', 'not a currency'), '1.234,5 not a currency')
})

test('formats decimals of any length like the built-in formatter, in every language', () => {
  const digits = (least: number, most: number) =>
    fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: least, maxLength: most })
  fc.assert(
    fc.property(
      fc.bigInt(0n, 10n ** 60n),
      digits(0, 40),
      fc.constantFrom(...languages),
      (whole, fraction, language) => {
        const text = fraction === '' ? String(whole) : `${whole}.${fraction}`
        const locale = `${language}-u-nu-latn`
        const own = new Intl.NumberFormat(locale, {
          minimumFractionDigits: fraction.length,
          maximumFractionDigits: fraction.length,
        })
        assert.equal(
          numbersOf(language).decimal(text),
          own.format(text as Intl.StringNumericLiteral),
        )
        const digits = fraction.replace(/0+$/, '').padEnd(2, '0').length
        const money = new Intl.NumberFormat(locale, {
          style: 'currency',
          currency: 'USD',
          minimumFractionDigits: digits,
          maximumFractionDigits: digits,
        })
        assert.equal(
          numbersOf(language).money(text, 'USD'),
          money.format(text as Intl.StringNumericLiteral),
        )
      },
    ),
  )
})
