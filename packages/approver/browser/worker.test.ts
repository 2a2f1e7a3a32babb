// A service worker that another program stored under the origin of the page, in a real browser: it
// outlives that program and imitates the page, but not in a private window.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContext } from 'playwright-core'
import { PAGE_WAIT_MS, startBrowser } from '../../../testing/browser.ts'
import { approvalOf, documentOf, startPage, TestPlatform } from '../testing/fixture.ts'

/**
 * Worker of the other program. It answers navigations with an imitation, or with the page that it
 * has requested itself (`/relay`), so that the token and the texts of the real page are in it.
 */
const WORKER = `
  addEventListener('install', () => skipWaiting())
  addEventListener('activate', (event) => event.waitUntil(clients.claim()))
  addEventListener('fetch', (event) => {
    if (event.request.mode !== 'navigate') return
    const own = (text) => new Response('<title>imitation</title>' + text,
      { headers: { 'content-type': 'text/html' } })
    event.respondWith((async () => {
      if (!event.request.url.endsWith('?relay')) return own('')
      return own('relayed ' + (await fetch(event.request)).status)
    })())
  })
`
const INSTALL = `<script>
  navigator.serviceWorker.register('/worker.js')
  navigator.serviceWorker.ready.then(() => { document.title = 'ready' })
</script>`

let browser: Browser
/** A context stands for a profile: it has a storage of its own, as a private window has. */
let profile: BrowserContext
before(async () => {
  browser = await startBrowser()
  profile = await newProfile()
})
after(() => browser?.close())

async function newProfile(): Promise<BrowserContext> {
  const context = await browser.newContext()
  context.setDefaultTimeout(PAGE_WAIT_MS)
  return context
}

/** Starts the other program on a free port. */
async function startOther(): Promise<Server> {
  const server = createServer((request, response) => {
    const isWorker = request.url === '/worker.js'
    response.setHeader('content-type', isWorker ? 'text/javascript' : 'text/html')
    response.end(isWorker ? WORKER : INSTALL)
  })
  await new Promise<void>((done) => {
    server.listen(0, '127.0.0.1', done)
  })
  return server
}

test('attack: a stored worker imitates the page in the normal profile, and not in a private window', async () => {
  const other = await startOther()
  const { port } = other.address() as AddressInfo
  const infected = await profile.newPage()
  await infected.goto(`http://localhost:${port}`)
  await infected.waitForFunction('document.title === "ready"')
  other.closeAllConnections()
  await new Promise((done) => {
    other.close(done)
  })

  let loads = 0
  const approver = await startPage(new TestPlatform(await approvalOf(documentOf())), {
    port,
    onNavigation: () => (loads += 1),
  })
  try {
    // The worker that relays comes last: the response to its request tells the browser to remove it.
    for (const path of ['', '', '?relay']) {
      await infected.goto(`${approver.origin}/${path}`)
      assert.equal(await infected.title(), 'imitation', path)
      if (path === '?relay')
        assert.equal(await infected.evaluate('document.body.innerText'), 'relayed 200')
      assert.equal(loads, 0, 'a request of the worker does not count as a load')
    }
    const privateWindow = await newProfile()
    const page = await privateWindow.newPage()
    await page.goto(approver.origin)
    await page.getByRole('link', { name: 'Approvals', exact: true }).waitFor()
    assert.equal(loads, 1)
  } finally {
    approver.close()
  }
})
