import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pino } from 'pino'
import { waitFor } from '../../../../../../testing/wait-for.ts'
import { Child } from './child.ts'

const folder = mkdtempSync(join(tmpdir(), 'custody-child-'))
const said: string[] = []
const log = pino(
  { level: 'warn' },
  {
    write: (text: string) => {
      said.push((JSON.parse(text) as { msg: string }).msg)
    },
  },
)
/**
 * Script of the child. It appends a line at each start, and exits before it is ready at the starts
 * that its list names.
 */
const script = join(folder, 'child.mjs')
writeFileSync(
  script,
  `
import { appendFileSync, readFileSync } from 'node:fs'
const [, , starts, failing] = process.argv
appendFileSync(starts, process.pid + '\\n')
if (failing.split(',').includes(String(readFileSync(starts, 'utf8').trim().split('\\n').length))) process.exit(1)
process.stdin.once('end', () => process.exit(0)).resume()
console.log('ready here')
`,
)
const children: Child[] = []
after(async () => {
  await Promise.all(children.map((child) => child.stop()))
  rmSync(folder, { recursive: true })
})

function childNamed(
  name: string,
  failing: string,
): { child: Child; starts: () => number; logFolder: string } {
  const [starts, logFolder] = [join(folder, `${name}-starts`), join(folder, `${name}-logs`)]
  writeFileSync(starts, '')
  mkdirSync(logFolder)
  const child = new Child(
    {
      name,
      script,
      args: [starts, failing],
      logFile: join(logFolder, 'log'),
      ready: /^ready (\S+)$/m,
    },
    log,
  )
  children.push(child)
  return { child, starts: () => readFileSync(starts, 'utf8').trim().split('\n').length, logFolder }
}

const killed = (child: Child) => process.kill(child.pid as number, 'SIGKILL')

test('a child that exits before it is ready is restarted until it becomes ready', async () => {
  const { child, starts } = childNamed('weak', '2,3')
  assert.equal(await child.start(), 'here')
  killed(child)
  await waitFor('the fourth start', () => starts() === 4 && child.isReady)
  assert.deepEqual(said.splice(0), [
    'a child process ended; it is restarted',
    ...Array.from(
      { length: 2 },
      () => 'a child process could not be restarted; the restart is retried',
    ),
  ])
})

test('the child is restarted even if its log file cannot be opened for a while', async () => {
  const { child, starts, logFolder } = childNamed('mute', '')
  await child.start()
  rmSync(logFolder, { recursive: true })
  killed(child)
  await waitFor('a failed try', () =>
    said.includes('a child process could not be restarted; the restart is retried'),
  )
  mkdirSync(logFolder)
  await waitFor('the second start', () => starts() === 2 && child.isReady)
})

test('a child that is stopped between two restart attempts stays stopped', async () => {
  const { child, starts } = childNamed('stopped', '2')
  await child.start()
  said.length = 0
  killed(child)
  await waitFor('a failed try', () =>
    said.includes('a child process could not be restarted; the restart is retried'),
  )
  await child.stop()
  assert.deepEqual([child.pid, child.isReady, starts()], [null, false, 2])
})

test('a child that is stopped between attempts of its first start is not started', async () => {
  const { child, starts } = childNamed('early', '1')
  const started = child.start()
  started.catch(() => undefined)
  await waitFor('the first try', () => starts() === 1 && child.pid === null)
  await child.stop()
  await assert.rejects(started, /did not start/)
  assert.deepEqual([child.pid, starts()], [null, 1])
})
