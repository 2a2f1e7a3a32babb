// How the page is opened: the browser of the machine, and what the terminal states about it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApproverError } from '../errors.ts'
import { FirstLoad, type After } from './first-load.ts'
import { findBrowser, openPrivateWindow, type Machine } from './private-window.ts'
import { openPage } from './run.ts'

const ORIGIN = 'http://localhost:24873'

/** A machine on which some files exist. */
const machine = (
  platform: NodeJS.Platform,
  files: readonly string[],
  env: Machine['env'] = {},
): Machine => ({ platform, env, exists: (path) => files.includes(path) })

test('finds the browser of each platform, with its option for private windows', () => {
  const screen = { PATH: '/opt/bin:/usr/bin', DISPLAY: ':0' }
  const programs = { ProgramFiles: String.raw`C:\Program Files`, LOCALAPPDATA: String.raw`C:\u` }
  const chrome = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
  const edge = String.raw`C:\Program Files\Microsoft\Edge\Application\msedge.exe`
  const firefox = String.raw`C:\u\Mozilla Firefox\firefox.exe`
  for (const [place, path, option] of [
    [machine('linux', ['/opt/bin/chromium'], screen), '/opt/bin/chromium', '--incognito'],
    [
      machine('linux', ['/usr/bin/firefox-esr'], { WAYLAND_DISPLAY: 'wayland-0' }),
      '/usr/bin/firefox-esr',
      '-private-window',
    ],
    [
      machine('linux', ['/usr/bin/microsoft-edge'], screen),
      '/usr/bin/microsoft-edge',
      '--inprivate',
    ],
    [machine('darwin', [chrome]), chrome, '--incognito'],
    [machine('win32', [edge], programs), edge, '--inprivate'],
    [machine('win32', [firefox], programs), firefox, '-private-window'],
  ] as const)
    assert.deepEqual(findBrowser(undefined, place), { path, option })
})

test('finds no browser on a machine without a screen, unless its program is named', () => {
  const none = machine('linux', ['/usr/bin/firefox'], { PATH: '/usr/bin' })
  assert.equal(findBrowser(undefined, none), null)
  assert.equal(findBrowser(undefined, machine('linux', [], { DISPLAY: ':0' })), null)
  assert.deepEqual(findBrowser('/usr/bin/firefox', none), {
    path: '/usr/bin/firefox',
    option: '-private-window',
  })
  assert.throws(
    () => findBrowser('/missing', none),
    (error) => error instanceof ApproverError && error.code === 'OPTION',
  )
})

test('reports that a browser could not be started', async () => {
  const missing = { path: '/missing/browser', option: '--incognito' } as const
  assert.equal(await openPrivateWindow(missing, ORIGIN), false)
})

/** Opens the page with a clock that `pass` moves. */
async function opened(open: ((url: string) => Promise<boolean>) | null) {
  const lines: string[] = []
  const calls: { at: number; call: () => void }[] = []
  let now = 0
  const after: After = (ms, call) => {
    const entry = { at: now + ms, call }
    calls.push(entry)
    return () => calls.splice(calls.indexOf(entry), 1)
  }
  const report = (line: string) => lines.push(line)
  const loaded = new FirstLoad(report, ORIGIN, after)
  await openPage(ORIGIN, { report, open }, loaded)
  const pass = (ms: number) => {
    now += ms
    for (const entry of calls.filter(({ at }) => at <= now)) {
      calls.splice(calls.indexOf(entry), 1)
      entry.call()
    }
  }
  return { lines, loaded, pass }
}
const works = () => Promise.resolve(true)

test('reports the first load of the page, once', async () => {
  const { lines, loaded, pass } = await opened(works)
  assert.match(lines[0] ?? '', /use it in that window only/)
  loaded.note()
  loaded.note()
  pass(60_000)
  assert.deepEqual(lines.slice(1), ['a browser window has loaded the page from this program'])
})

test('warns after 20 seconds without a load, and still reports a later one', async () => {
  const { lines, loaded, pass } = await opened(works)
  pass(19_999)
  assert.equal(lines.length, 1)
  pass(1)
  assert.match(lines[1] ?? '', /something else shows that page: close the window/)
  loaded.note()
  assert.equal(lines.length, 3)
})

test('states how to open the page by hand, without a browser or if it does not start', async () => {
  for (const open of [null, () => Promise.resolve(false)]) {
    const { lines, pass } = await opened(open)
    pass(60_000)
    assert.equal(lines.length, 2)
    assert.ok(lines[0]?.includes(`private window of your browser`) && lines[0].includes(ORIGIN))
    assert.match(lines[1] ?? '', /otherwise something else shows a page/)
  }
})
