import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'

/** On a machine that has much else to do. */
const WAIT_MS = 30_000
const DESK = { width: 1440, height: 900 }
const PHONE = { width: 390, height: 844 }
/** Where pictures go, where any are wanted. */
const PICTURES = process.env['CUSTODY_SCREENSHOTS']

interface Violation { id: string; nodes: { html: string }[] }

/** A browser before the control panel of one origin, and what it must never do. */
export class Visitor {
  /** What was thrown, what broke the policy, and what was asked of another origin. */
  readonly problems: string[] = []
  readonly origin: string
  readonly #browser: Browser

  constructor(browser: Browser, origin: string) {
    this.#browser = browser
    this.origin = origin
  }

  /** A page of a context of its own. */
  async open(): Promise<{ page: Page; context: BrowserContext }> {
    const context = await this.#browser.newContext({
      locale: 'en-GB', timezoneId: 'UTC', colorScheme: 'light', reducedMotion: 'reduce', viewport: DESK,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    context.setDefaultTimeout(WAIT_MS)
    await context.addInitScript({
      content: `addEventListener('securitypolicyviolation', (event) => console.error('policy ' + event.violatedDirective + ' ' + event.blockedURI))`,
    })
    const page = await context.newPage()
    page.on('pageerror', (error) => this.problems.push(`thrown ${error.message}`))
    page.on('console', (message) => {
      if (message.text().startsWith('policy ')) this.problems.push(message.text())
    })
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url())
      if (protocol !== 'data:' && protocol !== 'blob:' && origin !== this.origin) this.problems.push(`asked ${request.url()}`)
    })
    return { page, context }
  }
}

/** No violation of any rule of axe. Its script is taken in once a document: that costs as much as a run. */
export async function accessible(page: Page, what: string): Promise<void> {
  if (!await page.evaluate<boolean>('"axe" in window')) await page.evaluate(axe.source)
  const violations = await page.evaluate<Violation[]>(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(
    ({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => ({ html })) })))`)
  assert.deepEqual(violations.map(({ id, nodes }) => `${what}: ${id} ${nodes.map(({ html }) => html.slice(0, 160)).join(' ')}`), [])
}

/** Axe on a desk and on a phone; a picture of each where they are wanted; nothing is wider than a phone. */
export async function look(page: Page, what: string, o: { picture?: string | undefined; isWhole?: boolean; isOnPhone?: boolean } = {}): Promise<void> {
  await accessible(page, `${what} at ${DESK.width}`)
  if (o.picture !== undefined) await picture(page, o.picture, o.isWhole)
  await page.setViewportSize(PHONE)
  const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
  assert.ok(wide <= PHONE.width, `${what}: ${wide} pixels wide on a phone`)
  await accessible(page, `${what} at ${PHONE.width}`)
  if (o.picture !== undefined && o.isOnPhone === true) await picture(page, `${o.picture}-phone`)
  await page.setViewportSize(DESK)
}

/** A picture, where they are wanted. */
export async function picture(page: Page, name: string, isWhole = false): Promise<void> {
  if (PICTURES === undefined) return
  mkdirSync(PICTURES, { recursive: true })
  await page.screenshot({ path: join(PICTURES, `console-${name}.png`), fullPage: isWhole, animations: 'disabled' })
}
