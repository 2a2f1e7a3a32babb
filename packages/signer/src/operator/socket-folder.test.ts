import assert from 'node:assert/strict'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { listenOperator } from './server.ts'
import { socketOf } from '../set-up/files.ts'

/**
 * The name of the socket's folder in the temporary folder is predictable: another user may have
 * created it first.
 */
const folder = mkdtempSync(join(tmpdir(), 'signer-socket-'))
const home = join(folder, 'h'.repeat(100))
const path = socketOf(home)
const place = dirname(path)
const clear = () => rmSync(place, { recursive: true, force: true })
after(() => {
  clear()
  rmSync(folder, { recursive: true, force: true })
})

const CASES: [string, () => void, RegExp][] = [
  ['a symbolic link to a folder of ours', () => symlinkSync(folder, place), /is a symbolic link/],
  [
    'a folder that others may enter',
    () => {
      mkdirSync(place)
      chmodSync(place, 0o755)
    },
    /is open to other users \(mode 0755\)/,
  ],
  ['a file', () => writeFileSync(place, ''), /is not a folder/],
]
for (const [what, make, reason] of CASES) {
  test(`attack: refuses ${what} as the socket folder, at set-up and at the start`, async () => {
    clear()
    make()
    const before = lstatSync(place).mode
    assert.throws(() => socketOf(home), reason)
    await assert.rejects(listenOperator(createServer(), path), reason)
    assert.equal(lstatSync(place).mode, before, 'nothing was changed')
  })
}

test(
  'attack: refuses a folder of another user',
  { skip: process.getuid?.() === 0 ? false : 'needs another user' },
  async () => {
    const { chownSync } = await import('node:fs')
    clear()
    mkdirSync(place, { mode: 0o700 })
    chownSync(place, 65_534, 65_534)
    assert.throws(() => socketOf(home), /belongs to another user \(uid 65534\)/)
  },
)

test('reuses its own folder, and creates it again if it was removed', async () => {
  clear()
  assert.equal(socketOf(home), path)
  clear()
  const server = createServer()
  await listenOperator(server, path)
  assert.equal(lstatSync(place).mode & 0o777, 0o700)
  await new Promise((resolve) => {
    server.close(resolve)
  })
})
