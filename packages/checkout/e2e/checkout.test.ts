// The page in a real browser, used like a payer. All tests share one browser.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { AxeBuilder } from '@axe-core/playwright'
import jsqr from 'jsqr'
import type { Browser, Page } from 'playwright-core'
import { startBrowser } from '../../../testing/browser.ts'
import { Fixture, paymentOf, selectedOf } from '../testing/fixture.ts'
import { pixels } from '../testing/pixels.ts'
import { DESK, PHONE, says, visit } from '../testing/visit.ts'
import { widgetTests } from '../testing/widget-paths.ts'

const fixture = new Fixture()
let browser: Browser
before(async () => {
  browser = await startBrowser()
  await fixture.start()
})
after(async () => {
  await browser?.close()
  fixture.stop()
})

const PAID = selectedOf('ETH', { paid_amount: '0.01663334', due_amount: '0' })

async function assertAccessible(page: Page, what: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze()
  assert.deepEqual(
    violations.map(
      ({ id, nodes }) => `${what}: ${id} ${nodes.map(({ html }) => html.slice(0, 120)).join(' ')}`,
    ),
    [],
  )
}

/** Returns the text of the QR code, decoded from its pixels. */
async function read(page: Page): Promise<string | undefined> {
  const { data, width, height } = await pixels(page, '.qr')
  const corner = 4 * (12 * width + 12)
  assert.deepEqual(
    Array.from(data.subarray(corner, corner + 3)),
    [255, 255, 255],
    'the code is dark on white',
  )
  return jsqr.default(data, width, height, { inversionAttempts: 'dontInvert' })?.data
}

const spoken = (page: Page) => page.locator('div[role=status]')

test('a payer selects a coin, pays, and returns to the shop, on a phone and without a reload', async () => {
  const shop = `${fixture.base}/widget.js`
  const { page, clean, close } = await visit(browser, fixture.add('whole', { success_url: shop }))
  await says(page, 'How would you like to pay?')
  assert.equal(await page.title(), 'Pay Nordlicht Kaffee')
  assert.deepEqual(
    await page
      .locator('.coin')
      .allInnerTexts()
      .then((all) => all.map((text) => text.replaceAll(/\s+/g, ' ').trim())),
    [
      'BTC Bitcoin Bitcoin network 0.00083167 BTC',
      'ETH Ether Ethereum network 0.01663334 ETH',
      'USDT Tether USD Ethereum network 49.885035 USDT Tron network 49.885035 USDT Solana network 49.885035 USDT',
      'XRP XRP XRP Ledger network Your wallet must be able to send a destination tag or memo with it. 22.681819 XRP',
    ],
  )
  await assertAccessible(page, 'choose')
  await page.getByRole('button', { name: /XRP Ledger/ }).tap()
  await says(page, 'Waiting for your payment')
  assert.match(
    await page.locator('.field-tag').innerText(),
    /Destination tag\s+3042817\s+Copy[\s\S]+Without it, the payment is lost/,
  )
  assert.match(
    await page.locator('.network-warning').innerText(),
    /Send only XRP, and only on the XRP Ledger network/,
  )
  assert.equal(
    await page.getByRole('link', { name: 'Open in wallet' }).getAttribute('href'),
    selectedOf('XRP').payment_uri,
  )
  await assertAccessible(page, 'pay')
  for (const [name, text, word] of [
    ['Amount to send', '22.681819', 'Amount copied'],
    ['Address', selectedOf('XRP').address, 'Address copied'],
    ['Destination tag', '3042817', 'Destination tag copied'],
  ] as const) {
    await page.getByRole('button', { name: `Copy ${name}` }).tap()
    await spoken(page).filter({ hasText: word }).waitFor()
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text)
    await page.getByRole('button', { name: `Copied ${name}` }).waitFor()
  }
  assert.equal(await read(page), selectedOf('XRP').payment_uri)
  await page.getByLabel('Address only').tap()
  assert.equal(await read(page), selectedOf('XRP').address)
  await page.getByRole('button', { name: 'Change' }).tap()
  await page.getByRole('button', { name: /^Ether Ethereum/ }).tap()
  await says(page, 'Waiting for your payment')

  const requests = fixture.requests.filter((line) => line.startsWith('GET /checkout/whole')).length
  // A payment waits for a block, is withdrawn before one arrives, and is sent again.
  const waiting = paymentOf('ETH', '0.01663334', {
    status: 'seen',
    hash: 'cafe',
    confirmations: 0,
    required: 12,
  })
  fixture.set('whole', { inv_status: 'Processing', selected: PAID, payments: [waiting] })
  await says(page, 'Payment received')
  assert.match(
    await page.locator('.payments').innerText(),
    /0\.01663334 ETH\s+Waiting for the first block/,
  )
  assert.equal(
    await page.getByRole('progressbar').getAttribute('aria-valuetext'),
    '0 of 12 confirmations',
  )
  fixture.set('whole', {
    inv_status: 'Pending',
    selected: selectedOf('ETH'),
    payments: [{ ...waiting, status: 'dropped' }],
  })
  await says(page, 'Waiting for your payment')
  assert.match(await page.locator('.payments').innerText(), /0\.01663334 ETH\s+Withdrawn/)
  await assertAccessible(page, 'dropped')

  fixture.set('whole', {
    inv_status: 'Processing',
    selected: PAID,
    payments: [paymentOf('ETH', '0.01663334', { confirmations: 2, required: 12 })],
  })
  await says(page, 'Payment received')
  assert.equal(
    await page.evaluate(() => document.activeElement?.className),
    'status-title',
    'the focus follows to the new screen',
  )
  await spoken(page).filter({ hasText: 'Payment received' }).waitFor()
  assert.equal(
    await page.getByRole('progressbar').getAttribute('aria-valuetext'),
    '2 of 12 confirmations',
  )
  fixture.set('whole', {
    payments: [paymentOf('ETH', '0.01663334', { confirmations: 5, required: 12 })],
  })
  await page.getByText('5/12').waitFor()
  await assertAccessible(page, 'processing')
  fixture.set('whole', {
    inv_status: 'Paid',
    payments: [
      paymentOf('ETH', '0.01663334', { status: 'confirmed', confirmations: 12, required: 12 }),
    ],
  })
  await says(page, 'Payment complete')
  assert.equal(await page.title(), 'Paid · Nordlicht Kaffee')
  assert.equal(
    fixture.requests.filter((line) => line.startsWith('GET /checkout/whole')).length,
    requests,
    'all of it came by the stream',
  )
  assert.match(
    await page.locator('.receipt').innerText(),
    /Paid to\s+Nordlicht Kaffee\s+Payment\s+€49\.90\s+Received\s+0\.01663334 ETH[\s\S]+2026-1147/,
  )
  await assertAccessible(page, 'paid')
  await page.emulateMedia({ media: 'print' })
  assert.deepEqual(
    [await page.locator('.receipt').isVisible(), await page.locator('.actions').isVisible()],
    [true, false],
  )
  await page.emulateMedia({ media: 'screen' })
  await page.getByText(/Taking you back in \d seconds/).waitFor()
  await page.getByRole('button', { name: 'Stay here' }).tap()
  assert.equal(await page.locator('.returning').count(), 0)
  await clean()
  await page.getByRole('link', { name: 'Back to Nordlicht Kaffee' }).tap()
  await page.waitForURL(shop)
  await close()
})

test('redirects a waiting payer automatically, but not a payer who opens a receipt later', async () => {
  const { page, clean, close } = await visit(
    browser,
    fixture.add('back', { success_url: `${fixture.base}/widget.js`, selected: selectedOf('ETH') }),
  )
  await says(page, 'Waiting')
  await clean()
  await page.clock.install()
  fixture.set('back', { inv_status: 'Paid', selected: PAID })
  await says(page, 'Payment complete')
  await page.clock.runFor(11_000)
  await page.waitForURL(`${fixture.base}/widget.js`)
  await page.goto(`${fixture.base}/checkout/back`)
  await says(page, 'Payment complete')
  assert.equal(await page.locator('.returning').count(), 0)
  await close()
})

test('after a partial payment, amount, QR code and wallet link contain the missing amount', async () => {
  const { page, clean, close } = await visit(
    browser,
    fixture.add('part', { selected: selectedOf('BTC') }),
    DESK,
  )
  await says(page, 'Waiting')
  const codeBefore = await read(page)
  fixture.set('part', {
    exception: 'partial',
    selected: selectedOf('BTC', { paid_amount: '0.0005', due_amount: '0.00033167' }),
    payments: [
      paymentOf('BTC', '0.0005', { status: 'confirmed' }),
      paymentOf('ETH', '0.001', { hash: 'feed', counts: false, status: 'held' }),
    ],
  })
  await says(page, 'Partly paid')
  assert.equal(
    await page.locator('.status-detail').innerText(),
    '0.0005 BTC has arrived. Please send the missing 0.00033167 BTC.',
  )
  assert.match(
    await page.locator('.field-amount').innerText(),
    /Amount still missing\s+0\.00033167 BTC/,
  )
  const code = await read(page)
  assert.notEqual(code, codeBefore)
  assert.match(code ?? '', /amount=0\.00033167$/)
  assert.match(
    await page.locator('.payments').innerText(),
    /0\.001 ETH\s+Being checked · Not counted/,
  )
  assert.equal(
    await page.getByRole('button', { name: 'Change' }).count(),
    0,
    'what was paid stays with its coin',
  )
  await assertAccessible(page, 'partial')
  await clean()
  await close()
})

test('every final state has its own layout, text and colour, and says what to do', async () => {
  const failed_url = `${fixture.base}/widget.js`
  const seen = new Set<string>()
  for (const [id, more, heading, detail] of [
    ['expired', { inv_status: 'Expired' }, 'Time to pay is over', /Do not send anything/],
    [
      'short',
      {
        inv_status: 'Expired',
        exception: 'partial',
        selected: selectedOf('ETH', { paid_amount: '0.01' }),
      },
      'Time to pay is over',
      /Only 0\.01 ETH of 0\.01663334 ETH/,
    ],
    [
      'late',
      { inv_status: 'Expired', exception: 'late' },
      'Paid too late',
      /Nordlicht Kaffee will accept or return it/,
    ],
    [
      'over',
      {
        inv_status: 'Paid',
        exception: 'over',
        selected: selectedOf('ETH', { paid_amount: '0.02' }),
      },
      'too much',
      /You sent 0\.00336666 ETH too much/,
    ],
    [
      'invalid',
      { inv_status: 'Invalid', payments: [paymentOf('ETH', '1', { status: 'reverted' })] },
      'Payment not accepted',
      /Nordlicht Kaffee does not accept/,
    ],
    ['cancelled', { inv_status: 'Invalid', cancelled: true }, 'Payment cancelled', /Send nothing/],
  ] as const) {
    const { page, clean, close } = await visit(
      browser,
      fixture.add(id, {
        selected: PAID,
        failed_url,
        ...more,
        payments: 'payments' in more ? [...more.payments] : [],
      }),
      DESK,
    )
    await says(page, heading)
    assert.match(await page.locator('.status-detail').innerText(), detail)
    seen.add(
      `${await page.locator('.status-shape .icon').getAttribute('class')} ${await page.locator('.status').evaluate((status) => getComputedStyle(status).getPropertyValue('--tone'))}`,
    )
    assert.equal(await page.locator('.qr').count(), 0, 'nothing more is to be sent')
    if (!id.startsWith('over'))
      assert.equal(
        await page.getByRole('link', { name: 'Back to Nordlicht Kaffee' }).getAttribute('href'),
        failed_url,
      )
    if (id === 'late') await assertAccessible(page, id)
    await clean()
    await close()
  }
  assert.equal(seen.size, 6)
  const { page, close } = await visit(browser, `${fixture.base}/checkout/nobody`)
  await says(page, 'Invoice not found')
  await assertAccessible(page, 'missing')
  await close()
})

test('announces the countdown at 10, 5 and 1 minutes, and emphasizes its last five minutes', async () => {
  // The clock of this machine is wrong by an hour.
  fixture.skewMs = 3_600_000
  const url = fixture.add('clock', { selected: selectedOf('ETH') })
  const context = await browser.newContext({ ...PHONE, locale: 'en-GB', reducedMotion: 'reduce' })
  const page = await context.newPage()
  await page.clock.install()
  // Only the stream delivers updates: otherwise a response during the simulated minutes would count
  // them twice.
  await page.route('**/state', (route) => route.abort())
  await page.goto(url)
  await page.getByText('30 minutes left').waitFor()
  assert.equal(await spoken(page).innerText(), '')
  const passes = async (minutes: number) => {
    await page.clock.runFor(minutes * 60_000)
  }
  await passes(20)
  await spoken(page).filter({ hasText: '10 minutes left' }).waitFor()
  assert.equal(await page.locator('.time-left.is-last').count(), 0)
  await passes(5)
  await spoken(page).filter({ hasText: '5 minutes left' }).waitFor()
  assert.match(await page.locator('.time-left.is-last').innerText(), /^[34]:\d\d left to pay$/)
  await passes(4)
  await spoken(page).filter({ hasText: '1 minute left' }).waitFor()
  fixture.set('clock', { inv_status: 'Expired' })
  await says(page, 'Time to pay is over')
  await spoken(page).filter({ hasText: 'Time to pay is over' }).waitFor()
  fixture.skewMs = 0
  await context.close()
})

test('each language is fully translated, in its direction, and fits the width of a phone', async () => {
  const url = fixture.add('words', {
    exception: 'partial',
    selected: selectedOf('XRP', { paid_amount: '10', due_amount: '12.681819' }),
    payments: [paymentOf('XRP', '10', { confirmations: 1, required: 2 })],
  })
  for (const [locale, code, words, amount] of [
    ['en-US', 'en', 'Partly paid', '€49.90'],
    ['de-AT', 'de', 'Teilweise bezahlt', '49,90 €'],
    ['es-MX', 'es', 'Pagado en parte', '49,90 €'],
    ['ru-RU', 'ru', 'Оплачено частично', '49,90 €'],
    ['zh-CN', 'zh', '已部分付款', '€49.90'],
    ['ar-EG', 'ar', 'دُفع جزء من المبلغ', '49.90'],
  ] as const) {
    const { page, clean, close } = await visit(browser, url, { ...PHONE, locale })
    await says(page, words)
    const { lang, dir, text, overflow } = await page.evaluate(() => ({
      lang: document.documentElement.lang,
      dir: document.documentElement.dir,
      text: document.body.innerText,
      overflow: document.documentElement.scrollWidth - innerWidth,
    }))
    assert.deepEqual([lang, dir, overflow], [code, code === 'ar' ? 'rtl' : 'ltr', 0])
    assert.doesNotMatch(text, /[{}]|undefined|[٠-٩]/)
    assert.ok(
      (await page.locator('.summary-amount').innerText())
        .replaceAll('\u00a0', ' ')
        .includes(amount),
      'the amount in Latin digits',
    )
    for (const code of await page.locator('.code, .tag, .amount').all())
      assert.equal(await code.getAttribute('dir'), 'ltr')
    if (code === 'ar') {
      await assertAccessible(page, 'ar')
      // The language chosen in the menu is stored; one in the URL has priority.
      await page.getByLabel('اللغة').selectOption('de')
      await says(page, 'Teilweise bezahlt')
      assert.equal(await page.evaluate(() => document.documentElement.dir), 'ltr')
      await page.goto(url)
      await says(page, 'Teilweise bezahlt')
      await page.goto(`${url}?lang=es`)
      await says(page, 'Pagado en parte')
    } else await clean()
    await close()
  }
})

test('each language uses its own separators, and copied amounts use a decimal point', async () => {
  const due = '12345.681819'
  const url = fixture.add('numbers', {
    fiat: 'EUR',
    fiat_amount: '24900.005',
    exception: 'partial',
    selected: selectedOf('XRP', { paid_amount: '1234.5', due_amount: due }),
    payments: [paymentOf('XRP', '1234.5', { confirmations: 1000, required: 2000 })],
  })
  const plain = (text: string) =>
    text
      .replaceAll(/[\u00a0\u202f]/g, ' ')
      .replaceAll(/[\u200e\u200f]/g, '')
      .trim()
  for (const [locale, paid, missing, expected, confirmations] of [
    ['en-US', '1,234.5 XRP', '12,345.681819 XRP', '€24,900.005', /1,000 of 2,000/],
    ['de-DE', '1.234,5 XRP', '12.345,681819 XRP', '24.900,005 €', /1\.000 von 2\.000/],
    ['es-ES', '1234,5 XRP', '12.345,681819 XRP', '24.900,005 €', /1000 .*2000/],
    ['ru-RU', '1 234,5 XRP', '12 345,681819 XRP', '24 900,005 €', /1 000 .*2 000/],
    ['zh-CN', '1,234.5 XRP', '12,345.681819 XRP', '€24,900.005', /1,000.*2,000|2,000.*1,000/],
    ['ar-EG', '1,234.5 XRP', '12,345.681819 XRP', '24,900.005 €', /1,000 .*2,000/],
  ] as const) {
    const { page, clean, close } = await visit(browser, url, { ...DESK, locale })
    const field = page.locator('.field-amount')
    await field.waitFor()
    assert.equal(plain(await field.locator('.amount').innerText()), missing, locale)
    assert.equal(plain(await page.locator('.payment-amount').innerText()), paid, locale)
    assert.equal(plain(await page.locator('.summary-amount').innerText()), expected, locale)
    assert.match(plain(await page.locator('.payment-status').innerText()), confirmations, locale)
    await field.locator('button').click()
    await page.locator('.field-amount .copy.is-done').waitFor()
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), due, locale)
    assert.ok(
      (await page.locator('a.button.primary').getAttribute('href'))?.includes(`amount=${due}`),
      locale,
    )
    // Selecting the text by hand, for browsers without access to the clipboard, gives the same
    // text.
    await page.evaluate(() => navigator.clipboard.writeText('nothing'))
    await field.locator('.amount').selectText()
    await page.keyboard.press('ControlOrMeta+C')
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), due, locale)
    await clean()
    await close()
  }
})

test('the page can be used with only the keyboard, at 1280 pixels in dark mode', async () => {
  const { page, clean, close } = await visit(browser, fixture.add('keys'), DESK)
  await says(page, 'How would')
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  assert.equal(dark, 'rgb(16, 20, 24)')
  const focused = () =>
    page.evaluate(() => {
      const element = document.activeElement as HTMLElement
      const { height, width } = element.getBoundingClientRect()
      const named = element
        .getAttribute('aria-labelledby')
        ?.split(' ')
        .map((id) => document.getElementById(id)?.innerText)
        .join(' ')
      const name = named ?? element.innerText.replaceAll(/\s+/g, ' ').trim()
      return {
        name: element.matches('input') ? (element.parentElement as HTMLElement).innerText : name,
        size: Math.min(height, width),
        outline: getComputedStyle(element.closest('label') ?? element).outlineStyle,
      }
    })
  const tab = async (times = 1) => {
    for (let at = 0; at < times; at++) await page.keyboard.press('Tab')
    return focused()
  }
  await tab()
  const first = await tab()
  assert.match(first.name, /Bitcoin/)
  assert.equal(first.outline, 'solid', 'the focus is seen')
  await page.keyboard.press('Enter')
  await says(page, 'Waiting')
  const names: string[] = []
  for (let at = 0; at < 5; at++) {
    const { name, size, outline } = await tab()
    names.push(name)
    assert.ok(size >= 44, `${name} is ${size} px`)
    assert.equal(outline, 'solid', name)
  }
  assert.deepEqual(names, [
    'Change',
    'Payment link',
    'Copy Amount to send',
    'Copy Address',
    'Open in wallet',
  ])
  await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Enter')
  await spoken(page).filter({ hasText: 'Address copied' }).waitFor()
  await assertAccessible(page, 'pay in the dark')
  assert.equal(await read(page), selectedOf('BTC').payment_uri, 'dark on white here too')
  await clean()
  await close()
})

test('the page polls without an event stream, reconnects, and reports an unreachable server', async () => {
  fixture.streams = false
  const { page, close } = await visit(browser, fixture.add('poll', { selected: selectedOf('ETH') }))
  await says(page, 'Waiting')
  fixture.set('poll', { inv_status: 'Processing', selected: PAID })
  await says(page, 'Payment received')
  fixture.streams = true
  await close()

  const cut = await visit(browser, fixture.add('cut', { selected: selectedOf('ETH') }))
  await says(cut.page, 'Waiting')
  await cut.page.route('**/state', (route) => route.abort())
  fixture.streams = false
  fixture.cut()
  await cut.page.getByText('Connection lost').waitFor()
  await cut.page.unroute('**/state')
  fixture.streams = true
  fixture.set('cut', { inv_status: 'Processing', selected: PAID })
  await says(cut.page, 'Payment received')
  await cut.page.locator('.connection.is-shown').waitFor({ state: 'detached' })
  await cut.close()
})

test('reports an asset that is not available, and lets the payer select another', async () => {
  fixture.choiceStatus = 503
  const { page, clean, close } = await visit(browser, fixture.add('refused'))
  await says(page, 'How would')
  await page.getByRole('button', { name: /Bitcoin/ }).tap()
  await page.getByRole('alert').filter({ hasText: 'cannot be used right now' }).waitFor()
  fixture.choiceStatus = 200
  await page.getByRole('button', { name: /^Ether Ethereum/ }).tap()
  await says(page, 'Waiting')
  await clean()
  await close()
})

widgetTests(() => browser, fixture)
