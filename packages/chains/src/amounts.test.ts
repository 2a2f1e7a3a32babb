// Amounts of money as text: parsed exactly, or refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../testing/property.ts'
import { formatAmount, parseAmount } from './index.ts'
import { refuses } from '../testing/support.ts'

test('parses and formats the example amounts exactly', () => {
  const cases: [string, number, bigint][] = [
    ['0', 8, 0n],
    ['1', 8, 100_000_000n],
    ['0.1', 8, 10_000_000n],
    ['0.00000001', 8, 1n],
    ['20999999.9769', 8, 2_099_999_997_690_000n],
    ['1e-7', 8, 10n],
    ['1E+2', 0, 100n],
    ['1.5e1', 0, 15n],
    ['0.000000000000000001', 18, 1n],
    ['123456789.123456789012345678', 18, 123_456_789_123_456_789_012_345_678n],
    ['1.0', 0, 1n],
    ['1.000', 2, 100n],
    ['100e-2', 0, 1n],
    ['0e-999', 2, 0n],
    ['0.0000', 2, 0n],
    ['9007199254740993', 0, 9_007_199_254_740_993n],
    ['0.1000000000000000055511151231257827', 34, 1_000_000_000_000_000_055_511_151_231_257_827n],
  ]
  for (const [text, decimals, amount] of cases)
    assert.equal(parseAmount(text, decimals), amount, text)
})

test('refuses an amount with too many decimals instead of rounding it', () => {
  for (const [text, decimals] of [
    ['0.000000001', 8],
    ['1.5', 0],
    ['1e-9', 8],
    ['0.0000000000000000001', 18],
    ['1.23e-1', 2],
    ['1e-999', 18],
  ] as const) {
    refuses(() => parseAmount(text, decimals), 'AMOUNT_PRECISION')
  }
})

test('refuses text that is not a decimal number', () => {
  for (const text of [
    '',
    ' ',
    '-1',
    '+1',
    '.5',
    '5.',
    '1,5',
    '1_000',
    '0x1',
    'NaN',
    'Infinity',
    '1e',
    'e1',
    '1e1.5',
    '1 ',
    ' 1',
    '1\n',
    '١',
    '１',
    '1e9999',
    '1e999',
    `${'9'.repeat(101)}`,
    '--1',
    '1.2.3',
    'null',
  ]) {
    refuses(() => parseAmount(text, 8), 'AMOUNT_FORMAT')
  }
})

test('parsing a formatted amount returns the same amount, for up to 30 decimals', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 48n }), fc.nat(30), (amount, decimals) => {
      const text = formatAmount(amount, decimals)
      assert.equal(parseAmount(text, decimals), amount)
      assert.match(text, /^(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/)
      assert.equal(formatAmount(-amount, decimals), amount === 0n ? '0' : `-${text}`)
    }),
  )
})

test('an exponent only moves the decimal point of a number', () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 10n ** 20n }),
      fc.nat(18),
      fc.integer({ min: -10, max: 10 }),
      (amount, decimals, exponent) => {
        const shifted = exponent >= 0 ? amount * 10n ** BigInt(exponent) : null
        if (shifted !== null)
          assert.equal(
            parseAmount(`${formatAmount(amount, decimals)}e${exponent}`, decimals),
            shifted,
          )
        // A text with superfluous zeros has the same value.
        const text = formatAmount(amount, decimals)
        assert.equal(parseAmount(`${text}${text.includes('.') ? '' : '.'}000`, decimals), amount)
        assert.equal(parseAmount(`${amount}e-${decimals}`, decimals), amount)
      },
    ),
  )
})

test('parses the text of any JavaScript number to exactly the printed value', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e15, noNaN: true }), (value) => {
      const text = String(value)
      if (value < 1e-80) return
      assert.equal(Number(formatAmount(parseAmount(text, 100), 100)), value)
    }),
  )
})
