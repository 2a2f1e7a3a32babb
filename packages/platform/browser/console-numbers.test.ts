// Tests of the numbers of the control panel in a real browser: a value belongs to the amount beside
// it, and a phone breaks no number, badge or address inside.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import pino from 'pino'
import { startBrowser } from '../../../testing/browser.ts'
import { consolePages } from '../src/console-api/console/pages.ts'
import { useApi } from '../testing/api-support.ts'
import { DESK, look, PHONE, picture, Visitor } from '../testing/console-browser.ts'
import { join } from '../testing/console-fixture.ts'
import { call, transferBody, type Transfer } from '../testing/harness.ts'

const TO = '0x52908400098527886E0F7030069857D2E4169EE7'
const HELD = [
  ['ETH', 9_999_906_850_748_929_612n],
  ['BTC', 150_012_345_678n],
  ['XRP', 494_999_990n],
  ['DASH', 48_000_000_000_001n],
  ['DOGE', 123_456_789_012_345_678n],
  ['USDC_ETH', 8_700_000_000n],
] as const

const api = useApi({}, consolePages(pino({ level: 'silent' })))
let browser: Browser
let visitor: Visitor
let page: Page
let paths: string[] = []

before(async () => {
  await api.started
  const user = await api.user('acme')
  for (const [asset, amount] of HELD) {
    const made = await call(user, 'POST', '/dac/v1/create-wallet', { asset })
    assert.equal(made.status, 200, made.text)
    await api.fund(user, asset, amount)
  }
  // The transfer reserves its amount, so less can be sent than the wallet has.
  const sent = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('ETH', '1.890000000000000001', TO),
  )
  assert.equal(sent.status, 200, sent.text)
  paths = [
    '',
    '/wallets',
    ...HELD.map(([asset]) => `/wallets/${asset}`),
    '/transactions',
    `/transactions/${sent.body.id}`,
    '/prices',
    '/prepaid',
    '/tanks',
    '/send?asset=ETH',
    '/invoices',
  ]
  const owner = await join(api, user.workspaceId, 'owner')
  browser = await startBrowser()
  visitor = new Visitor(browser, owner.browser.origin)
  const opened = await visitor.open()
  page = opened.page
  const [name = '', ...value] = owner.browser.cookie.split('=')
  await opened.context.addCookies([{ name, value: value.join('='), url: visitor.origin }])
})
after(async () => {
  await browser?.close()
})

const visit = async (path: string) => {
  await page.goto(`${visitor.origin}/console/w/acme/main${path}`)
  await page.locator('main h1').waitFor()
  await page.locator('main :is(.skeleton, [aria-busy=true])').first().waitFor({ state: 'detached' })
}

/** A place of a page that displays amounts of coins and values in US dollars. */
interface Place {
  text: string
  coins: string[]
  dollars: string[]
}

/** Returns the rows, figures and totals of the page that display a value in US dollars. */
const valuedPlaces = (): Promise<Place[]> =>
  page.evaluate(`[...document.querySelectorAll('main tr, .figures > div, p.total, p.estimate')]
    .map((place) => {
      const amounts = [...place.querySelectorAll('.amount')].filter((each) => each.checkVisibility())
      const texts = amounts.map((each) => each.innerText.trim())
      return {
        text: place.innerText,
        coins: texts.filter((text) => !text.includes('$')),
        dollars: texts.filter((text) => text.includes('$')),
      }
    })
    .filter(({ coins, dollars }) => coins.length > 0 && dollars.length > 0)`)

const toCents = (amount: string): string => {
  const [, whole, fraction = ''] = /([\d,]+)(?:\.(\d+))?/.exec(amount) ?? assert.fail(amount)
  return `${whole}.${fraction.padEnd(2, '0').slice(0, 2)}`
}

test('at a price of one dollar, each value equals the amount beside it', async () => {
  let seen = 0
  for (const path of paths) {
    await visit(path)
    for (const { text, coins, dollars } of await valuedPlaces())
      for (const value of dollars) {
        seen++
        assert.ok(
          coins.some((coin) => toCents(coin) === toCents(value)),
          `${path}: ${value} is the value of no amount in: ${text}`,
        )
      }
  }
  // Two tables of six balances, six wallets, two transactions.
  assert.ok(seen >= 20, `${seen} values`)
  await visit('/wallets/ETH')
  const figure = page.locator('.figures > div', { hasText: 'Can be sent' })
  assert.match(await figure.innerText(), /^Can be sent\n8\.1\d+ ETH\n≈ \$8\.1\d\b/)
  assert.deepEqual(visitor.problems, [])
})

/**
 * Returns the numbers, asset badges and groups of addresses that are broken over lines. A number is
 * digits with separators that are no part of a word; codes and commands may break.
 */
const broken = (): Promise<string[]> =>
  page.evaluate(`(() => {
    const NUMBER = /(?<![\\w.:-])[−+-]?\\$?\\d[\\d,]*(?:\\.\\d+)?(?![\\w:-])/g
    const lines = (range) => new Set([...range.getClientRects()]
      .filter(({ width }) => width > 0).map(({ top }) => Math.round(top))).size
    const found = []
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const range = document.createRange()
    for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {
      const at = node.parentElement
      if (at.closest('script, style, .sr-only, pre') !== null || !at.checkVisibility()) continue
      const whole = at.closest('.asset-badge, .asset-ticker, .group, .number')
      if (whole !== null) {
        range.selectNodeContents(whole)
        if (lines(range) > 1) found.push(whole.textContent)
      } else if (at.closest('code, .code') === null)
        for (const match of node.data.matchAll(NUMBER)) {
          range.setStart(node, match.index)
          range.setEnd(node, match.index + match[0].length)
          if (lines(range) > 1) found.push(match[0])
        }
    }
    return [...new Set(found)]
  })()`)

test('a phone breaks no number, badge or group of an address, and shortens long amounts', async () => {
  for (const path of paths) {
    await page.setViewportSize(PHONE)
    await visit(path)
    assert.deepEqual(await broken(), [], `${path} at 390 pixels`)
    const name = path.replaceAll(/\W+/g, '-').slice(0, 24)
    await page.setViewportSize(DESK)
    await look(page, `${path} with long amounts`, { picture: `numbers${name}`, isOnPhone: true })
  }
  await page.setViewportSize(PHONE)
  await visit('/wallets/BTC')
  await page.getByRole('button', { name: 'Main address' }).click()
  const address = page.locator('dialog .id.is-whole bdi')
  assert.match(await address.innerText(), /^bcrt1\w+$/)
  assert.deepEqual(await broken(), [], 'a dialog with an address')
  await picture(page, 'numbers-address-phone')
  await visit('/wallets')
  const short = page.getByRole('button', { name: '9.999906850748929612 ETH' })
  assert.equal(await short.innerText(), '≈\u00a09.999906')
  await short.click()
  await page.locator('.toast', { hasText: '9.999906850748929612 ETH' }).waitFor()
  assert.equal(new URL(page.url()).pathname, '/console/w/acme/main/wallets')
  await page.setViewportSize(DESK)
  await page.locator('td').getByText('9.999906850748929612 ETH', { exact: true }).waitFor()
  assert.equal(await short.count(), 0)
  assert.deepEqual(visitor.problems, [])
})
