import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { startBrowser } from '../../../testing/browser.ts'
import { DESK, says, visit } from '../../checkout/testing/visit.ts'
import { freePorts } from '../../signer/testing/data-dirs.ts'
import { call, PRIVATE_KEY, TestPlatform, type User } from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests of the checkout page as the platform serves it, paid on a local chain in a real browser.
 */
const platform = new TestPlatform()
let browser: Browser
let merchant: User
let shop: ChildProcess | null = null

before(async () => {
  // The browser is started first, so that it is closed even if the rest of the setup fails.
  browser = await startBrowser()
  await platform.start()
  merchant = await platform.user('shop')
  for (const asset of ['XRP', 'ETH'])
    assert.equal((await call(merchant, 'POST', '/dac/v1/create-wallet', { asset })).status, 200)
})
after(async () => {
  shop?.kill()
  await browser?.close()
  await platform.remove()
})

interface Invoice {
  inv_id: string
  checkout_url: string
}
async function charge(more: Record<string, unknown> = {}): Promise<Invoice> {
  const { status, body, text } = await call<Invoice & Record<string, unknown>>(
    merchant,
    'POST',
    '/dac/v1/invoices',
    { fiat: 'USD', fiat_amount: '19.90', memo: 'A hat', ...more },
  )
  assert.equal(status, 200, text)
  return body
}

test('a payer selects an asset, pays in two parts, and sees the receipt without a page reload', async () => {
  const { inv_id, checkout_url } = await charge({
    order_id: 'order-7',
    success_url: `${platform.base}/livez`,
  })
  const { page, clean, close } = await visit(browser, checkout_url, DESK)
  await says(page, 'How would you like to pay?')
  await page.getByRole('button', { name: /XRP/ }).click()
  await says(page, 'Waiting for your payment')
  const state = await call<{
    selected: { address: string; address_tag: string; crypto_amount: string }
  }>(null, 'GET', `/checkout/${inv_id}/state`, undefined, { base: platform.base })
  const { address, address_tag: tag, crypto_amount: amount } = state.body.selected
  assert.equal(await page.locator('.field-address .code').innerText(), address)
  assert.equal(await page.locator('.field-tag .tag').innerText(), tag)
  assert.equal(await page.locator('.field-amount .amount').innerText(), `${amount} XRP`)
  const pay = (part: string) =>
    platform.operator('devnet', { command: 'fund', asset: 'XRP', address, amount: part, tag })
  await pay('2')
  await page.getByRole('heading', { name: 'Partly paid' }).waitFor()
  const missing = (await page.locator('.field-amount .amount').innerText()).replace(' XRP', '')
  assert.equal(Number(missing) + 2, Number(amount))
  await pay(missing)
  await page.getByRole('heading', { name: 'Payment complete' }).waitFor()
  const receipt = (await page.locator('.receipt').innerText()).split('\n')
  for (const message of ['shop', '$19.90', `${amount} XRP`, 'order-7', inv_id])
    assert.ok(receipt.includes(message), message)
  await clean()
  await page.getByRole('link', { name: 'Back to shop' }).click()
  await page.waitForURL(`${platform.base}/livez`)
  await close()
})

test('serves the checkout page with security headers and its files, and 404 for an unknown id', async () => {
  const { checkout_url } = await charge()
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(new URL(path, platform.base), { headers })
  const page = await get(checkout_url)
  const html = await page.text()
  assert.equal(page.status, 200)
  assert.equal(page.headers.get('cache-control'), 'no-store')
  assert.equal(page.headers.get('x-content-type-options'), 'nosniff')
  assert.ok(page.headers.get('x-rate-limit-remaining') && page.headers.get('x-request-id'))
  assert.match(
    page.headers.get('content-security-policy') ?? '',
    /^default-src 'none';.* frame-ancestors 'none'$/,
  )
  assert.equal(
    (
      await call(merchant, 'PUT', '/dac/v1/invoice-settings', {
        allowed_origins: ['https://shop.example'],
      })
    ).status,
    200,
  )
  assert.match(
    (await get(checkout_url)).headers.get('content-security-policy') ?? '',
    /frame-ancestors https:\/\/shop\.example$/,
  )

  const script = /src="(\/checkout\/assets\/[\w-]+\.js)"/.exec(html)?.[1] ?? assert.fail(html)
  const file = await get(script)
  assert.deepEqual(
    [file.status, file.headers.get('cache-control'), file.headers.get('content-type')],
    [200, 'public, max-age=31536000, immutable', 'text/javascript; charset=utf-8'],
  )
  assert.equal((await fetch(new URL(script, platform.base), { method: 'HEAD' })).status, 200)
  const widget = await get('/widget.js')
  assert.deepEqual(
    [widget.status, widget.headers.get('cache-control')],
    [200, 'public, max-age=300'],
  )
  assert.equal(
    (await get('/widget.js', { 'if-none-match': widget.headers.get('etag') ?? '' })).status,
    304,
  )

  for (const path of [
    '/checkout/assets/..%2f..%2fpackage.json',
    '/checkout/assets/%2e%2e%2findex.html',
    '/checkout/assets/nothing.js',
    `${script}.br`,
  ]) {
    const missing = await get(path)
    assert.deepEqual(
      [missing.status, missing.headers.get('cache-control')],
      [404, 'no-store'],
      path,
    )
  }
  for (const id of ['inv_nobody', '%00', 'a%20b', 'x'.repeat(150), "'--"]) {
    const missing = await get(`/checkout/${id}`)
    assert.deepEqual(
      [missing.status, missing.headers.get('content-type')],
      [404, 'text/html; charset=utf-8'],
      id,
    )
    assert.match(await missing.text(), /data-missing/)
  }
  assert.equal((await get('/checkout/%00/state')).status, 404)
  const { paths } = (await (await get('/openapi.json')).json()) as {
    paths: Record<string, unknown>
  }
  assert.deepEqual(
    Object.keys(paths)
      .filter((path) => path.startsWith('/checkout') || path === '/widget.js')
      .toSorted(),
    ['/checkout/{inv_id}/asset', '/checkout/{inv_id}/events', '/checkout/{inv_id}/state'],
  )
})

test('the shop in examples/shop charges, is paid in the widget, and is notified by webhook', async () => {
  const [port] = await freePorts(1)
  const origin = `http://localhost:${port}`
  const {
    body: { secret },
  } = await call<{ secret: string }>(merchant, 'POST', '/dac/v1/webhooks', {
    url: `http://127.0.0.1:${port}/webhook`,
    events: ['invoice.paid'],
  })
  assert.equal(
    (
      await call(merchant, 'PUT', '/dac/v1/invoice-settings', {
        display_name: 'Hats',
        allowed_origins: [origin],
      })
    ).status,
    200,
  )
  const key = join(platform.home, 'shop-key.pem')
  writeFileSync(key, PRIVATE_KEY, { mode: 0o600 })
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('../../../examples/shop/shop.ts', import.meta.url))],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        CUSTODY_URL: platform.base,
        CUSTODY_API_KEY: merchant.apiKey,
        CUSTODY_KEY: key,
        WEBHOOK_SECRET: secret,
        PORT: String(port),
      },
    },
  )
  shop = child
  await new Promise((resolve, reject) => {
    child.stdout.once('data', resolve)
    child.once('exit', (code) => reject(new Error(`the shop ended (${code})`)))
  })
  const { page, close } = await visit(browser, origin, DESK, [platform.base])
  await page.getByRole('button', { name: 'Order a hat' }).click()
  const state = page.locator('#state')
  await state.filter({ hasText: 'is open' }).waitFor()
  const id = page.url().split('/').at(-1) as string
  const {
    body: {
      data: [invoice],
    },
  } = await call<{ data: Invoice[] }>(merchant, 'GET', `/dac/v1/invoices?order_id=${id}`)
  assert.ok(invoice)
  const forged = await fetch(`${origin}/webhook`, {
    method: 'POST',
    body: JSON.stringify({
      type: 'invoice.paid',
      data: { order_id: id, inv_id: invoice.inv_id },
    }),
    headers: {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(Date.now() / 1000)),
      'webhook-signature': 'v1,AAAA',
    },
  })
  assert.equal(forged.status, 400)
  await page.reload()
  await state.filter({ hasText: 'is open' }).waitFor()

  await page.getByRole('link', { name: 'Pay now' }).click()
  const frame = page.frameLocator('iframe')
  await frame.getByRole('button', { name: /XRP/ }).click()
  const amount = (await frame.locator('.field-amount .amount').innerText()).replace(' XRP', '')
  await platform.operator('devnet', {
    command: 'fund',
    asset: 'XRP',
    address: await frame.locator('.field-address .code').innerText(),
    amount,
    tag: await frame.locator('.tag').innerText(),
  })
  await frame.getByRole('heading', { name: 'Payment complete' }).waitFor()
  await waitFor('the delivery', async () => {
    await page.reload()
    return (await state.innerText()).includes('is paid')
  })
  assert.equal(await page.getByRole('link', { name: 'Pay now' }).count(), 0)
  await close()
})
