// RFC 8785 (JSON Canonicalization Scheme): each value has one text, so that its signature or hash
// can be recomputed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalJson } from './index.ts'

test('sorts names by their UTF-16 units, at every depth (RFC 8785, 3.2.3)', () => {
  const value = {
    '€': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    ö: 'Latin Small Letter O With Diaeresis',
  }
  const text =
    '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign",' +
    '"\ud83d\ude00":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}'
  assert.equal(canonicalJson(value), text)
  assert.equal(canonicalJson([{ b: value, a: [] }, {}]), `[{"a":[],"b":${text}},{}]`)
})

test('encodes the RFC’s example of texts and literals, and keeps the order of lists (3.2.2)', () => {
  assert.equal(
    canonicalJson({
      string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/',
      literals: [null, true, false],
    }),
    '{"literals":[null,true,false],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  )
  assert.equal(canonicalJson([3, 1, 'b', 'a']), '[3,1,"b","a"]')
  for (const [value, text] of [
    [null, 'null'],
    ['', '""'],
    [false, 'false'],
    [0, '0'],
    [-0, '0'],
  ] as const) {
    assert.equal(canonicalJson(value), text)
  }
})

test('omits undefined from an object, and refuses it as a value by itself', () => {
  assert.equal(canonicalJson({ b: undefined, a: 1, c: { d: undefined } }), '{"a":1,"c":{}}')
  for (const [value, kind] of [
    [undefined, 'undefined'],
    [() => 1, 'function'],
    [Symbol('a'), 'symbol'],
  ] as const) {
    assert.throws(
      () => canonicalJson(value),
      new TypeError(`canonical JSON cannot contain a ${kind}`),
    )
    assert.throws(
      () => canonicalJson([value]),
      new TypeError(`canonical JSON cannot contain a ${kind}`),
    )
  }
})

test('accepts only whole and exact numbers', () => {
  assert.equal(
    canonicalJson([9_007_199_254_740_991, -9_007_199_254_740_991]),
    '[9007199254740991,-9007199254740991]',
  )
  for (const value of [0.5, 9_007_199_254_740_992, 1e21, NaN, Infinity, -Infinity]) {
    assert.throws(
      () => canonicalJson({ value }),
      new TypeError('canonical JSON cannot contain a number that is not an integer'),
    )
  }
})
