import assert from 'node:assert/strict'
import { chmodSync, existsSync, lstatSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { TestPlatform } from '../../../testing/harness.ts'
import { signersFolder } from '../../core/data-dir.ts'

/** Tests the modes of all files of a data folder after starts as `npm start` makes them. */
const platform = new TestPlatform({ mode: 'prepared' })
after(() => platform.remove())

/** Returns the paths, relative to a folder, that other users may read, write or enter. */
function openTo(folder: string, below = ''): { open: string[]; count: number } {
  const [open, count] = [[] as string[], { total: 0 }]
  for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
    const path = join(below, entry.name)
    const state = lstatSync(join(folder, path), { throwIfNoEntry: false })
    if (!state || entry.isSymbolicLink()) continue
    count.total++
    if ((state.mode & 0o077) !== 0) open.push(`${(state.mode & 0o777).toString(8)} ${path}`)
    if (entry.isDirectory()) {
      const inner = openTo(folder, path)
      open.push(...inner.open)
      count.total += inner.count
    }
  }
  return { open, count: count.total }
}

test('every file of a data folder is closed to other users, whatever the umask of the start is', async (t) => {
  const umask = process.umask(0)
  try {
    await platform.start()
  } finally {
    process.umask(umask)
  }
  const { home } = platform
  const first = openTo(home)
  t.diagnostic(`${first.count} files and folders`)
  assert.deepEqual(first.open, [])
  for (const path of ['ports.json', 'runtime.json', 'secrets.key', 'postgres.log'])
    assert.ok(existsSync(join(home, path)), path)
  const record = join(signersFolder(home), 'node-1', 'record.sqlite')
  assert.ok(existsSync(record) && first.count > 50, `${first.count} files`)
  await platform.stop()

  // Files that earlier versions left open are closed by the next start.
  for (const path of [record, join(home, 'ports.json')]) chmodSync(path, 0o644)
  writeFileSync(join(home, 'left-open'), '')
  chmodSync(join(home, 'left-open'), 0o666)
  await platform.start()
  assert.deepEqual(openTo(home).open, [])
})
