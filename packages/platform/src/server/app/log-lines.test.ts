import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { logLine } from './log-lines.ts'

/** Returns the line of an entry that pino writes. */
function lineOf(level: 'info' | 'warn' | 'error', fields: object, message: string): string {
  let line = ''
  const log = pino({}, { write: (entry) => (line = logLine(entry)) })
  log[level](fields, message)
  return line
}

test('a line has time, level, message and fields, without those of every entry', () => {
  assert.match(
    lineOf('warn', { network: 'BTC', height: 7, note: 'two words', none: null }, 'a block is late'),
    /^\d\d:\d\d:\d\d {2}warn {3}a block is late {2}network=BTC {2}height=7 {2}note="two words" {2}none=null$/,
  )
})

test('an error is its message, and a long value is shortened', () => {
  const line = lineOf('error', { err: new Error('no such host') }, 'not reachable')
  assert.match(line, /error {2}not reachable {2}err="no such host"$/)
  assert.ok(lineOf('info', { list: Array.from({ length: 1000 }, (_, at) => at) }, 'x').length < 260)
})

test('attack: an entry can neither begin a line nor control the terminal', () => {
  const line = lineOf(
    'info',
    { memo: 'a\n12:00:00  info  forged', b: '\u001b[2J' },
    'x\u001b[1A\ny',
  )
  assert.doesNotMatch(line, /\p{Cc}/u)
  assert.match(line, /x\\u001b\[1A\\u000ay/)
  assert.equal(logLine('not JSON\u001b[2J\n'), 'not JSON\\u001b[2J')
})
