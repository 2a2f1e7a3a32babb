// Tests of the API reference as the platform serves it, in a real browser: the page sends no
// requests to other servers, and a request that is signed in the page gets a response.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { Logger } from 'pino'
import { PAGE_WAIT_MS, startBrowser } from '../../../testing/browser.ts'
import { ERRORS } from '../src/core/errors.ts'
import { referencePages } from '../src/server/reference/pages.ts'
import { useApi } from '../testing/api-support.ts'
import { call, PRIVATE_KEY } from '../testing/harness.ts'

const quiet = {
  warn: (...words: unknown[]) => assert.fail(JSON.stringify(words)),
} as unknown as Logger
const api = useApi({}, referencePages(quiet))
let browser: Browser

before(async () => {
  browser = await startBrowser()
  await api.started
})
after(() => browser?.close())

/**
 * Opens a page in a context of its own, and records its requests to other servers and its
 * violations of the content security policy.
 */
async function open(path: string) {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    reducedMotion: 'reduce',
  })
  context.setDefaultTimeout(PAGE_WAIT_MS)
  const page = await context.newPage()
  const strangers: string[] = []
  const thrown: string[] = []
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    if (protocol !== 'data:' && origin !== api.base) strangers.push(request.url())
  })
  page.on('pageerror', (error) => thrown.push(error.message))
  await page.addInitScript({
    content: `window.broken = []
    addEventListener('securitypolicyviolation', (event) => broken.push(event.violatedDirective + ' ' + event.blockedURI))`,
  })
  await page.goto(`${api.base}${path}`)
  return {
    page,
    async end() {
      // One violation is ignored: a library tests whether it may compile code from strings, and
      // works without it.
      const broken = (await page.evaluate<string[]>('broken')).filter(
        (each) => each !== 'script-src eval',
      )
      assert.deepEqual({ strangers, thrown, broken }, { strangers: [], thrown: [], broken: [] })
      await context.close()
    },
  }
}

/** Sends the request of the open page, from the page's own window. */
async function send(page: Page, button: RegExp, path: string) {
  await page.getByRole('button', { name: button }).click()
  const answered = page.waitForResponse((response) => response.url().endsWith(path))
  await page.getByRole('button', { name: /^Send/ }).first().click()
  return answered
}

test('the API reference connects only to this server, and signs a request with a pasted key', async () => {
  const user = await api.user('reference')
  const { page, end } = await open('/reference')
  await page.getByRole('heading', { name: 'Custody API' }).first().waitFor()
  const use = page.getByRole('button', { name: 'Use', exact: true })
  await page.getByRole('button', { name: 'Sign requests' }).click()
  await page.getByLabel('API key (UUID)').fill('nobody')
  await use.click()
  await page.getByText('The API key is a UUID').waitFor()
  await page.getByLabel('API key (UUID)').fill(user.apiKey)
  await page.getByLabel('Private key (PEM)').fill('x')
  await use.click()
  await page.getByText('The private key is not a readable PEM').waitFor()
  await page.getByLabel('Private key (PEM)').fill(PRIVATE_KEY)
  await use.click()
  await page.getByText(`Signing as ${user.apiKey.slice(0, 8)}`).waitFor()
  assert.equal(
    await page.getByLabel('Private key (PEM)').inputValue(),
    '',
    'it is not left where it was pasted',
  )
  await page.goto(`${api.base}/reference#tag/gas-tanks/GET/dac/v1/gas-tanks`)
  const answer = await send(page, /Test Request.*gas-tanks\)$/, '/dac/v1/gas-tanks')
  assert.equal(answer.status(), 200, await answer.text())
  assert.equal((await answer.request().allHeaders())['x-api-key'], user.apiKey)
  await end()
})

test('the API reference signs a body with the control panel’s key, which cannot be exported', async () => {
  const user = await api.user('reference')
  const { page, end } = await open('/reference/errors')
  // Stores the key as the control panel does; the reference reads the panel's key store.
  const der = PRIVATE_KEY.replaceAll(/-----[^-]+-----|\s/g, '')
  await page.evaluate(`(async () => {
    const der = Uint8Array.from(atob('${der}'), (char) => char.charCodeAt(0))
    const key = await crypto.subtle.importKey('pkcs8', der, { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }, false, ['sign'])
    const opening = indexedDB.open('custody-console', 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore('keys', { keyPath: 'fingerprint' })
    await new Promise((resolve) => { opening.onsuccess = resolve })
    const writing = opening.result.transaction('keys', 'readwrite')
    writing.objectStore('keys').put({ fingerprint: 'f00d', workspace: 'acme', sub_account: 'main', private_key: key })
    await new Promise((resolve) => { writing.oncomplete = resolve })
    opening.result.close()
  })()`)
  await page.goto(`${api.base}/reference#tag/addresses/POST/dac/v1/validate-address`)
  await page.getByRole('button', { name: 'Sign requests' }).click()
  await page.getByLabel('API key (UUID)').fill(user.apiKey)
  await page.getByLabel('Key of this browser').selectOption('f00d')
  await page.getByRole('button', { name: 'Use', exact: true }).click()
  const answer = await send(page, /Test Request.*validate-address\)$/, '/dac/v1/validate-address')
  assert.equal(answer.status(), 200, await answer.text())
  assert.ok('valid' in (await answer.json()))
  await end()
})

test('the error page has an anchor for every code, and the type of an error links to its anchor', async () => {
  const page = await fetch(`${api.base}/reference/errors`)
  const html = await page.text()
  assert.equal(page.status, 200)
  assert.match(
    page.headers.get('content-security-policy') ?? '',
    /^default-src 'none'; script-src 'self'; style-src 'self';/,
  )
  for (const [code, [status, title]] of Object.entries(ERRORS)) {
    assert.ok(html.includes(`<section class="error" id="${code}">`), code)
    assert.ok(
      html.includes(`>${code}</a><span class="status">${status}</span>`) &&
        html.includes(title.replaceAll('&', '&amp;')),
      code,
    )
  }
  assert.doesNotMatch(html, /undefined/)
  const user = await api.user('reference')
  const { body } = await call<{ type: string; code: string }>(
    user,
    'GET',
    '/dac/v1/wallets?asset=NONE',
  )
  assert.equal(body.type, `${api.services.checkout.base}/reference/errors#${body.code}`)
})
