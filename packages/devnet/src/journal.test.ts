import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Journal } from './journal.ts'
import { removeHome, tempHome } from '../testing/support.ts'

const home = tempHome()
after(() => removeHome(home))

function written(name: string): string {
  const path = join(home, name)
  const { journal } = Journal.open<{ n: number }>(path)
  for (let n = 1; n <= 3; n += 1) journal.append([{ n }])
  journal.close()
  return path
}

function read(path: string): number[] {
  const { journal, records } = Journal.open<{ n: number }>(path)
  journal.close()
  return records.map(({ n }) => n)
}

test('reads records in the order in which they were written', () => {
  assert.deepEqual(read(written('whole')), [1, 2, 3])
})

test('drops a last line that is cut at any byte, and appends after it', () => {
  const path = written('torn')
  const whole = readFileSync(path)
  const start = whole.lastIndexOf(10, whole.length - 2) + 1
  for (let length = start; length < whole.length; length += 1) {
    writeFileSync(path, whole)
    truncateSync(path, length)
    const { journal, records } = Journal.open<{ n: number }>(path)
    assert.deepEqual(
      records.map(({ n }) => n),
      [1, 2],
    )
    journal.append([{ n: 4 }])
    journal.close()
    assert.deepEqual(read(path), [1, 2, 4])
  }
})

test('drops a last line of invalid bytes', () => {
  const path = written('garbage')
  appendFileSync(path, `${'\0'.repeat(40)}\n`)
  assert.deepEqual(read(path), [1, 2, 3])
})

test('refuses a journal that is damaged before its last line', () => {
  const path = written('damaged')
  const bytes = readFileSync(path)
  bytes[20]! ^= 1
  writeFileSync(path, bytes)
  assert.throws(() => Journal.open(path), /damaged in record 1/)
})
