import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { selectedOf, type Fixture } from './fixture.ts'
import { DESK, PHONE, visit } from './visit.ts'
import { startShop, type RecordedEvents } from './shop.ts'

const recorded = (page: Page): Promise<RecordedEvents> =>
  page.evaluate(() => (window as unknown as { recorded: RecordedEvents }).recorded)
const frameOf = (page: Page) => page.frameLocator('iframe:not(#second)')
/** Waits until all messages that were posted earlier have been received. */
const settle = (page: Page) =>
  page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        addEventListener('message', (event) => {
          if (event.data === 'settled') resolve()
        })
        postMessage('settled', '*')
      }),
  )

/**
 * Tests of the widget in a page of another site. @param browser browser of the file that runs these
 * tests
 */
export function widgetTests(browser: () => Browser, fixture: Fixture): void {
  test("the widget opens a dialog in another origin's shop, and reports the status only to it", async (t) => {
    const shop = await startShop(fixture.base)
    t.after(() => shop.stop())
    fixture.frameAncestors = [shop.allowed]
    fixture.add('framed', { selected: selectedOf('ETH'), success_url: `${shop.allowed}/thanks` })
    fixture.add('other')
    const { page, clean, close } = await visit(browser(), `${shop.allowed}/?invoice=framed`, DESK, [
      fixture.base,
      shop.stranger,
    ])
    await page.locator('#link').getByRole('link', { name: 'Pay now' }).click()
    const dialog = page.getByRole('dialog', { name: 'Zahlung' })
    await dialog.waitFor()
    // The shop's language is German, so the dialog's is too.
    await frameOf(page).getByRole('heading', { name: 'Warten auf Ihre Zahlung' }).waitFor()
    assert.equal(
      await page.evaluate(() => document.documentElement.style.overflow),
      'hidden',
      'the shop stands still',
    )
    assert.deepEqual((await recorded(page)).events, [
      { name: 'custody:status', invoiceId: 'framed', status: 'Pending' },
    ])

    const forged = { invoiceId: 'framed', status: 'Paid' }
    // Forged messages: from the shop's own page, from a page of the right origin in another frame,
    // and from this frame with another origin.
    await page.evaluate((message) => postMessage(message, '*'), forged)
    await page.evaluate((source) => {
      const frame = document.createElement('iframe')
      frame.src = source
      frame.id = 'second'
      document.body.append(frame)
    }, `${fixture.base}/checkout/other`)
    await page.frameLocator('#second').locator('.status-title').waitFor()
    const second =
      page.frames().find((each) => each.url().endsWith('/checkout/other')) ??
      assert.fail('there is no second frame')
    await second.evaluate((message) => parent.postMessage(message, '*'), forged)
    await settle(page)
    assert.deepEqual(
      (await recorded(page)).messages.filter(
        (each) => JSON.stringify(each) === JSON.stringify(forged),
      ).length,
      2,
      'both arrived',
    )
    assert.equal((await recorded(page)).events.length, 1, 'and neither was believed')

    fixture.set('framed', { inv_status: 'Processing' })
    await frameOf(page).getByRole('heading', { name: 'Zahlung eingegangen' }).waitFor()
    fixture.set('framed', { inv_status: 'Paid' })
    await frameOf(page).getByRole('heading', { name: 'Zahlung abgeschlossen' }).waitFor()
    assert.equal(
      await frameOf(page).locator('.returning').count(),
      0,
      'a frame goes nowhere by itself',
    )
    await frameOf(page).getByRole('button', { name: 'Schließen' }).click()
    await dialog.waitFor({ state: 'detached' })
    await clean()
    // A dialog is removed before its `close` event is sent.
    await page.waitForFunction(
      () => (window as unknown as { recorded: RecordedEvents }).recorded.events.length >= 4,
    )
    assert.deepEqual(
      (await recorded(page)).events.map(({ name, status }) => `${name} ${status}`),
      [
        'custody:status Pending',
        'custody:status Processing',
        'custody:status Paid',
        'custody:close Paid',
      ],
    )
    assert.equal(await page.evaluate(() => document.documentElement.style.overflow), '')

    // Closes the dialog by script and by keyboard: Esc also closes it from within the frame, and
    // the focus returns.
    await page.locator('#button').getByRole('button', { name: 'Mit Krypto zahlen' }).focus()
    await page.keyboard.press('Enter')
    await frameOf(page).locator('.status-title').waitFor()
    await frameOf(page).getByRole('button', { name: 'Schließen' }).focus()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'button')
    // The dialog is closed and opened again immediately, before the first one's end was reported:
    // the new dialog is separate and receives events.
    const called = page.evaluate(
      () =>
        new Promise((resolve) => {
          const { Custody } = window as unknown as {
            Custody: {
              pay(id: string, options?: { onStatus(status: string): void }): Promise<unknown>
            }
          }
          const before = Custody.pay('framed')
          document.body.lastElementChild?.shadowRoot?.querySelector('button')?.click()
          void Custody.pay('framed', {
            onStatus: (status) => resolve(before.then((last) => ({ status, last }))),
          })
          setTimeout(resolve, 20_000, 'nothing was heard')
        }),
    )
    assert.deepEqual(await called, { status: 'Paid', last: null })
    assert.equal(
      await page.evaluate(() => document.documentElement.style.overflow),
      'hidden',
      'the shop stands still again',
    )

    // Another page is loaded into the widget's own frame: the window is right, the origin is wrong.
    const before = await recorded(page)
    const inner =
      page.frames().find((each) => each.url().includes('/checkout/framed')) ??
      assert.fail('the frame is gone')
    await inner.goto(`${shop.stranger}/`)
    await inner.evaluate(
      (message) => parent.postMessage({ ...message, status: 'Expired' }, '*'),
      forged,
    )
    await settle(page)
    const now = await recorded(page)
    assert.deepEqual(now.messages.slice(before.messages.length), [
      { ...forged, status: 'Expired' },
      'settled',
    ])
    assert.equal(now.events.length, before.events.length)
    await close()
  })

  test('an origin that is not allowed gets a link instead of a frame, and no messages', async (t) => {
    const shop = await startShop(fixture.base)
    t.after(() => shop.stop())
    fixture.frameAncestors = [shop.allowed]
    const url = fixture.add('closed', { selected: selectedOf('ETH') })
    const stranger = await visit(browser(), `${shop.stranger}/?invoice=closed`, PHONE, [
      fixture.base,
    ])
    await stranger.page.locator('#button').getByRole('button').tap()
    const link = stranger.page.getByRole('link', { name: 'Zahlungsseite öffnen' })
    await link.waitFor()
    assert.equal(await link.getAttribute('href'), url)
    assert.deepEqual(await recorded(stranger.page), { events: [], messages: [], called: [] })
    await stranger.close()

    // The frame is embedded by an allowed origin, and its URL names one that is not allowed: no
    // message is sent to an origin only because the URL names it.
    for (const message of [shop.stranger, '*', 'null', `${shop.allowed}/x`, '']) {
      const framed = await visit(
        browser(),
        `${shop.allowed}/?frame=${encodeURIComponent(`${url}#origin=${encodeURIComponent(message)}`)}`,
        PHONE,
        [fixture.base],
      )
      await frameOf(framed.page).locator('.status-title').waitFor()
      await settle(framed.page)
      assert.deepEqual((await recorded(framed.page)).messages, ['settled'], message)
      await framed.close()
    }
    fixture.frameAncestors = []
  })
}
