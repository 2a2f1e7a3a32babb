import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { amountShort, amountText, usd, unitsText, usdShort } from './amounts.ts'
import { worth } from './api/decimal.ts'

/** Returns the decimal number of a displayed text. */
const read = (shown: string) => shown.replace('−', '-').replaceAll(/[$,]/g, '')
const same = (one: string, other: string): boolean => {
  const plain = (text: string) => {
    const [, sign, whole, fraction = ''] =
      /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? assert.fail(`${text} is no decimal`)
    return `${sign}${BigInt(whole as string)}.${fraction.replace(/0+$/, '')}`
  }
  return plain(one) === plain(other)
}

const decimals = fc
  .tuple(
    fc.bigInt(0n, 10n ** 40n),
    fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 30 }),
    fc.boolean(),
  )
  .map(
    ([whole, fraction, isNegative]) =>
      `${isNegative ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`,
  )

test('displays amounts and dollars with every digit, in groups of three', () => {
  assert.deepEqual(
    ['1234567.000000000000000001', '1.500', '0.00000001', '100', '-1000.10', '+5'].map(amountText),
    ['1,234,567.000000000000000001', '1.5', '0.00000001', '100', '−1,000.1', '+5'],
  )
  assert.deepEqual(['1312.5', '0.123456', '-1000', '0', '19.9000001', null].map(usd), [
    '$1,312.50',
    '$0.123456',
    '−$1,000.00',
    '$0.00',
    '$19.9000001',
    '–',
  ])
})

test('shortens long amounts for phones by omitting digits, and marks them', () => {
  const shown = [
    '9.999906850748929612',
    '494.99999',
    '1234567890.12345678',
    '-8.109906850748929611',
    '0.000000000000000001',
    '-0.000000000000000001',
    '48000000.00',
    '123456789012345',
    '0.123456000000000001',
  ].map(amountShort)
  assert.deepEqual(shown, [
    '≈ 9.999906',
    null,
    '≈ 1,234,567,890',
    '≈ −8.109906',
    '< 0.000001',
    '> −0.000001',
    null,
    null,
    '≈ 0.123456',
  ])
})

test('marks dollars that are rounded to the cent, and includes the exact text', () => {
  const shown = ['1312.5', '1312.509', '0.009', '-0.009', '-3.001', '0', '12', null].map((value) =>
    Object.values(usdShort(value)),
  )
  assert.deepEqual(shown, [
    ['$1,312.50', null],
    ['≈ $1,312.50', '$1,312.509'],
    ['< $0.01', '$0.009'],
    ['−$0.009', null],
    ['≈ −$3.00', '−$3.001'],
    ['$0.00', null],
    ['$12.00', null],
    ['–', null],
  ])
})

test('displays any decimal exactly or marks it as rounded', () => {
  fc.assert(
    fc.property(decimals, (value) => {
      assert.ok(same(read(amountText(value)), value), amountText(value))
      assert.ok(same(read(usd(value)), value), usd(value))
      const { text, exact } = usdShort(value)
      if (/^[≈<]/.test(text))
        assert.ok(exact !== null && same(read(exact), value), `${text} for ${value}`)
      else assert.ok(exact === null && same(read(text), value), `${text} for ${value}`)
    }),
  )
})

test('calculates the value of an amount exactly', () => {
  assert.equal(worth('0.000000000000000001', '3000.5'), '0.0000000000000030005')
  assert.equal(worth('2', '0.5'), '1')
  assert.equal(worth('1.000000000000000000000001', '2'), '2.000000000000000000000002')
  assert.equal(worth('-1.5', '2'), '-3')
  assert.equal(worth('1,5', '2'), null)
})

test('converts the smallest unit to a decimal', () => {
  const shown = [
    ['600000000000000000', 18],
    ['1', 8],
    ['0', 6],
    ['123456789', 6],
    ['5', 0],
  ].map(([digits, decimals]) => amountText(unitsText(String(digits), Number(decimals))))
  assert.deepEqual(shown, ['0.6', '0.00000001', '0', '123.456789', '5'])
})
