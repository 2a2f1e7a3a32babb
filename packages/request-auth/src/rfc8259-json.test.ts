// RFC 8259 and I-JSON (RFC 7493): each text has one meaning, and every digit is kept.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../testing/property.ts'
import { AuthError, JsonNumber, parseJson, stringifyJson } from './index.ts'
import { parseWithoutSource, stringifyWithoutRaw } from './json.ts'
import { refusesSync } from '../testing/support.ts'

/** Converts numbers to doubles, for a comparison with JSON.parse. */
function plain(value: unknown): unknown {
  if (value instanceof JsonNumber) return Number(value.text)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
  return value
}

test('numbers keep all their digits', () => {
  for (const text of [
    '0',
    '-0',
    '1',
    '1.0',
    '1.50',
    '0.1',
    '1e-7',
    '1E+7',
    '123456789.123456789012345678',
    '0.000000000000000001',
    '9007199254740993',
    '1e400',
    '1'.repeat(60),
  ]) {
    const value = parseJson(`{"amount":${text}}`) as { amount: JsonNumber }
    assert.ok(value.amount instanceof JsonNumber)
    assert.equal(value.amount.text, text)
    assert.equal(stringifyJson(value), `{"amount":${text}}`)
    assert.equal((parseJson(` [${text}\n] `) as JsonNumber[])[0]?.text, text)
    assert.equal((parseJson(text) as JsonNumber).text, text)
  }
})

test('refuses an object with a repeated key, however it is escaped', () => {
  for (const text of [
    '{"a":1,"a":2}',
    '{"a":1,"a":1}',
    '{"a":1,"b":2,"a":1}',
    '{"a":1,"\\u0061":1}',
    '{"\\u0061":1,"a":1}',
    '{"/":1,"\\/":1}',
    '{"\\n":1,"\\u000a":1}',
    '{"":1,"":1}',
    '{"x":{"a":1,"a":1}}',
    '[{"a":1,"a":1}]',
    '{"x":[{"y":{"a":{},"a":{}}}]}',
    '{"a":{"b":1},"a":{"b":1}}',
    '{"a" :1,"a"\n:1}',
    '{"😀":1,"\\ud83d\\ude00":1}',
    '{"\\"":1,"\\u0022":1}',
  ])
    refusesSync(() => parseJson(text), 'body', /appears twice/)
})

test('accepts the same key in different objects, and a value that looks like a key', () => {
  for (const text of [
    '{"a":{"a":1},"b":{"a":1}}',
    '[{"a":1},{"a":1}]',
    '{"a":"a","b":"a"}',
    '{"a":["a","a"]}',
    '{"a":"\\"a\\":1","b":"{\\"a\\":1}"}',
    '["a","a",":","{"]',
    '{"a":"b\\\\","c":"b\\\\"}',
  ]) {
    assert.deepEqual(plain(parseJson(text)), JSON.parse(text))
  }
})

test('refuses __proto__ in every escaped form, and accepts constructor as a key', () => {
  for (const text of [
    '{"__proto__":{}}',
    '{"a":{"__proto__":null}}',
    '{"\\u005f_proto__":1}',
    '[[{"__proto__":1}]]',
  ])
    refusesSync(() => parseJson(text), 'body', /__proto__/)
  assert.deepEqual(plain(parseJson('{"constructor":1,"prototype":2,"hasOwnProperty":3}')), {
    constructor: 1,
    prototype: 2,
    hasOwnProperty: 3,
  })
  assert.equal(parseJson('"__proto__"'), '__proto__')
})

test('accepts 32 levels of nesting, and refuses more', () => {
  const nested = (levels: number, open: string, close: string) =>
    open.repeat(levels) + close.repeat(levels)
  parseJson(nested(32, '[', ']'))
  parseJson(`${'{"a":'.repeat(32)}1${'}'.repeat(32)}`)
  refusesSync(() => parseJson(nested(33, '[', ']')), 'body', /deeper than 32/)
  refusesSync(() => parseJson(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`), 'body', /deeper than 32/)
  refusesSync(() => parseJson('['.repeat(1_000_000)), 'body')
  parseJson(`[${nested(31, '[', ']')},${nested(31, '[', ']')}]`)
  parseJson(JSON.stringify('['.repeat(100)))
})

test('refuses text that is not JSON', () => {
  for (const text of [
    '',
    ' ',
    '{',
    '}',
    '{]',
    '[1,]',
    '{"a":1,}',
    '{a:1}',
    "{'a':1}",
    '{"a":01}',
    '{"a":+1}',
    '{"a":.5}',
    '{"a":5.}',
    '{"a":1e}',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":0x10}',
    '{"a":1_000}',
    '{"a":1}{',
    '{"a":1} x',
    '// c\n{}',
    '{}/**/',
    '\ufeff{}',
    '{"a":undefined}',
    '"\n"',
    '"\\x41"',
    '"\\ud8"',
    'nul',
    'True',
    '{"a"}',
    '{"a":}',
    '{:1}',
    '{"a":1 "b":2}',
    '\u00a0{}',
    '"\\u12"',
    '{"\\x":1}',
    '{"a',
    '"\\',
  ])
    refusesSync(() => parseJson(text), 'body')
})

test('parses generated JSON like JSON.parse', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (text) => {
      if (text.includes('__proto__')) return
      assert.deepEqual(plain(parseJson(text)), JSON.parse(text))
    }),
    { numRuns: 1000 },
  )
})

test('stringifyJson writes text that parses to the same value, digit for digit', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (text) => {
      if (text.includes('__proto__')) return
      const value = parseJson(text)
      assert.deepEqual(parseJson(stringifyJson(value)), value)
    }),
    { numRuns: 500 },
  )
  const decimal = fc
    .tuple(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.stringMatching(/^\d{1,30}$/))
    .map(([whole, fraction]) => `${whole}.${fraction}`)
  fc.assert(
    fc.property(fc.array(decimal), (texts) => {
      assert.equal(stringifyJson(parseJson(`[${texts.join(',')}]`)), `[${texts.join(',')}]`)
    }),
  )
})

test('accepts exactly what JSON.parse accepts, except for the named refusals', () => {
  const noise = fc.oneof(
    fc.string({
      unit: fc.constantFrom(
        '{',
        '}',
        '[',
        ']',
        '"',
        ':',
        ',',
        '1',
        'a',
        '\\',
        ' ',
        'e',
        '-',
        '.',
        'null',
        '\\u0061',
        'true',
      ),
    }),
    fc
      .json()
      .chain((text) =>
        fc
          .tuple(fc.nat(text.length), fc.constantFrom('', ',', '"', '}', ':', '\\'))
          .map(([at, mark]) => text.slice(0, at) + mark + text.slice(at + 1)),
      ),
  )
  fc.assert(
    fc.property(noise, (text) => {
      let expected: unknown
      try {
        expected = JSON.parse(text)
      } catch {
        assert.throws(() => parseJson(text), AuthError)
        return
      }
      try {
        assert.deepEqual(plain(parseJson(text)), expected)
      } catch (error) {
        assert.ok(error instanceof AuthError, String(error))
        assert.match(error.message, /twice|deeper|__proto__/)
      }
    }),
    { numRuns: 2000 },
  )
})

test('refuses to write a JsonNumber that is not a number', () => {
  for (const text of ['1,"a":2', '', ' 1', '{}', 'NaN', '1}'])
    assert.throws(() => stringifyJson({ amount: new JsonNumber(text) }), SyntaxError)
})

test('gives the same results in runtimes without access to the text of numbers', () => {
  const tricky = [
    '"n1"',
    '"s"',
    '{"a":"n1","b":1,"n2":"s3"}',
    '{"a" : "b" , "c":-0}',
    '["\\"1\\"",1e5,"\\u006e1"]',
    '1.50',
    '"1"',
    '{"1":1,"0":[0.10]}',
    '{"x":"a:1"}',
  ]
  for (const text of tricky) assert.deepEqual(parseWithoutSource(text), parseJson(text), text)
  const value = fc.jsonValue({ maxDepth: 4 })
  fc.assert(
    fc.property(value, fc.nat(2), (each, indent) => {
      const text = JSON.stringify(each, null, indent)
      const read = parseWithoutSource(text)
      assert.deepEqual(
        read,
        JSON.parse(text, (_key, inner: unknown, context) =>
          typeof inner === 'number' ? new JsonNumber(context.source as string) : inner,
        ),
      )
      assert.equal(stringifyWithoutRaw(read), stringifyJson(read))
      assert.equal(stringifyWithoutRaw(each), JSON.stringify(each))
    }),
  )
  for (const each of [
    { a: undefined, b: [undefined, new Date(0)] },
    undefined,
    new JsonNumber('1.10'),
  ])
    assert.equal(stringifyWithoutRaw(each), stringifyJson(each))
  for (const text of [' 1', '1 ', '01', 'x']) {
    assert.throws(() => stringifyWithoutRaw(new JsonNumber(text)), SyntaxError)
    assert.throws(() => stringifyJson(new JsonNumber(text)), SyntaxError)
  }
  for (const text of ['', '{', '01', '1.', '"a', '[1,]'])
    assert.throws(() => parseWithoutSource(text), SyntaxError)
})
