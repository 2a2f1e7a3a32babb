import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  asInstalled,
  commandName,
  errorText,
  jsonText,
  manyLines,
  oneLine,
  TerminalError,
} from './terminal.ts'

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at)
const UNSAFE = [
  ...range(0, 0x1f),
  ...range(0x7f, 0x9f),
  0x61c,
  0x200e,
  0x200f,
  ...range(0x2028, 0x202e),
  ...range(0x2066, 0x2069),
  0xd800,
]

test('prints control characters, line separators and bidirectional overrides as \\uXXXX', () => {
  for (const code of UNSAFE) {
    const escape = `\\u${code.toString(16).padStart(4, '0')}`
    const text = `a${String.fromCharCode(code)}b`
    assert.equal(oneLine(text), `a${escape}b`)
    assert.equal(manyLines(text), code === 0x0a ? text : `a${escape}b`)
  }
  const plain = 'Zürich – “main” 東京 👩‍🔧 مرحبا'
  assert.equal(oneLine(plain), plain)
})

test('prints JSON without control characters, and the text parses to the same value', () => {
  const value = Object.fromEntries(
    UNSAFE.map((code) => [`k${String.fromCharCode(code)}`, [String.fromCharCode(code, 92, code)]]),
  )
  for (const indent of [undefined, 2]) {
    const text = jsonText(value, indent)
    assert.equal(indent === undefined ? oneLine(text) : manyLines(text), text)
    assert.deepEqual(JSON.parse(text), value)
  }
})

test('only a TerminalError prints several lines, and each of its arguments is one line', () => {
  assert.equal(errorText(new TerminalError('--a: b\nc', 'Usage: d')), '--a: b\\u000ac\nUsage: d')
  assert.equal(errorText(new Error('one\ntwo\u009b2K')), 'one\\u000atwo\\u009b2K')
})

test('messages name commands as installed: npx custody in a checkout, custody in a bundle', () => {
  const sentence = 'start it with "npm start"; `npx custody doctor` and npx custody: npx custodyx'
  const before = process.env['CUSTODY_BUNDLE']
  try {
    delete process.env['CUSTODY_BUNDLE']
    assert.deepEqual([commandName(), asInstalled(sentence)], ['npx custody', sentence])
    process.env['CUSTODY_BUNDLE'] = 'platform'
    assert.deepEqual(
      [commandName(), asInstalled(sentence)],
      ['custody', 'start it with "custody start"; `custody doctor` and custody: npx custodyx'],
    )
  } finally {
    if (before === undefined) delete process.env['CUSTODY_BUNDLE']
    else process.env['CUSTODY_BUNDLE'] = before
  }
})
