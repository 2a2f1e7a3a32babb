import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JsonNumber } from '@custody/request-auth'
import { wholeNumber } from './schemas.ts'

const schema = wholeNumber(0, Number.MAX_SAFE_INTEGER, 'Count')
const read = (text: string) => schema.safeParse(new JsonNumber(text))

test('reads every JSON spelling of an integer', () => {
  for (const [text, value] of [
    ['0', 0],
    ['-0', 0],
    ['900', 900],
    ['900.0', 900],
    ['9e2', 900],
    ['9.00E+2', 900],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
  ] as const) {
    const result = read(text)
    assert.ok(result.success, text)
    assert.equal(result.data, value, text)
  }
})

test('refuses numbers that a double would round to an integer', () => {
  for (const text of [
    '1.00000000000000000001',
    '0.99999999999999999999',
    '1e-400',
    '9007199254740992',
    '9007199254740991.4',
    '-1',
    '1e999',
    `1${'0'.repeat(200)}`,
  ])
    assert.equal(read(text).success, false, text)
  for (const value of ['7', 7, null, true, {}]) assert.equal(schema.safeParse(value).success, false)
})
