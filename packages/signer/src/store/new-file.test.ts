import assert from 'node:assert/strict'
import fs, {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { writeNewFile } from './new-file.ts'

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'custody-new-file-'))
  t.after(() => {
    rmSync(path, { recursive: true })
  })
  return path
}

test('writes a new file completely and privately, also on a file system without links', (t) => {
  t.mock.method(fs, 'linkSync', () => {
    throw Object.assign(new Error('EPERM'), { code: 'EPERM' })
  })
  syncBuiltinESMExports()
  const home = folder(t)
  writeNewFile(join(home, 'backup'), 'all of it')
  t.mock.restoreAll()
  syncBuiltinESMExports()
  assert.deepEqual(readdirSync(home), ['backup'])
  assert.deepEqual(
    [readFileSync(join(home, 'backup'), 'utf8'), statSync(join(home, 'backup')).mode & 0o777],
    ['all of it', 0o600],
  )
})

test('does not change an existing file or the draft file of another process', (t) => {
  const home = folder(t)
  for (const name of ['older', 'other.draft']) writeFileSync(join(home, name), name)
  assert.throws(
    () => {
      writeNewFile(join(home, 'older'), 'new')
    },
    { code: 'EEXIST' },
  )
  assert.throws(
    () => {
      writeNewFile(join(home, 'other'), 'new')
    },
    { code: 'EEXIST' },
  )
  assert.deepEqual(
    readdirSync(home).map((name) => [name, readFileSync(join(home, name), 'utf8')]),
    [
      ['older', 'older'],
      ['other.draft', 'other.draft'],
    ],
  )
})

test('a failed write leaves no file', (t) => {
  const home = folder(t)
  // The file name has the maximum length, so the name of the draft is too long.
  assert.throws(
    () => {
      writeNewFile(join(home, 'x'.repeat(255)), 'new')
    },
    { code: 'ENAMETOOLONG' },
  )
  assert.deepEqual(readdirSync(home), [])
})
