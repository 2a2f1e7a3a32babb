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

interface Violation {
  id: string
  nodes: { html: string }[]
}

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
      locale: 'en-GB',
      timezoneId: 'UTC',
      colorScheme: 'light',
      reducedMotion: 'reduce',
      viewport: DESK,
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
      if (protocol !== 'data:' && protocol !== 'blob:' && origin !== this.origin)
        this.problems.push(`asked ${request.url()}`)
    })
    return { page, context }
  }
}

/**
 * No violation of any rule of axe. Its script is taken in once a document: that costs as much as a
 * run.
 */
export async function accessible(page: Page, what: string): Promise<void> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe.source)
  const violations = await page.evaluate<
    Violation[]
  >(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(
    ({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => ({ html })) })))`)
  assert.deepEqual(
    violations.map(
      ({ id, nodes }) => `${what}: ${id} ${nodes.map(({ html }) => html.slice(0, 160)).join(' ')}`,
    ),
    [],
  )
}

/**
 * Axe on a desk and on a phone; a picture of each where they are wanted; on a phone nothing is too
 * wide, and no cell of a table is cut.
 */
export async function look(
  page: Page,
  what: string,
  o: { picture?: string | undefined; isWhole?: boolean; isOnPhone?: boolean } = {},
): Promise<void> {
  await accessible(page, `${what} at ${DESK.width}`)
  if (o.picture !== undefined) await picture(page, o.picture, o.isWhole)
  await page.setViewportSize(PHONE)
  const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
  assert.ok(wide <= PHONE.width, `${what}: ${wide} pixels wide on a phone`)
  assert.deepEqual(await cutCells(page), [], `${what}: cells of tables at ${PHONE.width} pixels`)
  await accessible(page, `${what} at ${PHONE.width}`)
  if (o.picture !== undefined && o.isOnPhone === true) await picture(page, `${o.picture}-phone`)
  await page.setViewportSize(DESK)
}

interface BrowserState {
  className: string
  scrollWidth: number
  clientWidth: number
  textContent: string | null
  closest(selector: string): BrowserState | null
  getBoundingClientRect(): { right: number; width: number }
}

/**
 * Cells of tables that a phone does not show whole, and that no other way shows: beyond the edge of
 * the table, over the next cell, cut by an ellipsis, or left out although the row opens no page.
 */
const cutCells = (page: Page): Promise<string[]> =>
  page.locator('.table th, .table td, .table td *').evaluateAll((elements: BrowserState[]) =>
    elements.flatMap((each) => {
      const table = each.closest('table')
      const { width, right } = each.getBoundingClientRect()
      const edge = table?.closest('.table-wrap')?.getBoundingClientRect().right ?? Infinity
      const isCell = each === each.closest('th, td')
      const isOpened =
        table?.className.includes('is-linked') === true || each.closest('th') !== null
      const why =
        isCell && width === 0 && !isOpened
          ? 'is left out'
          : width > 1 && right > edge + 1
            ? `ends ${Math.round(right - edge)} pixels beyond the edge`
            : isCell && each.scrollWidth > each.clientWidth + 1
              ? 'is wider than its cell'
              : width > 0 &&
                  /\bcut\b/.test(each.className) &&
                  each.scrollWidth > each.clientWidth + 1
                ? 'is cut'
                : null
      return why === null ? [] : [`${each.textContent?.slice(0, 60) ?? ''}: ${why}`]
    }),
  )

/** A picture, where they are wanted. */
export async function picture(page: Page, name: string, isWhole = false): Promise<void> {
  if (PICTURES === undefined) return
  mkdirSync(PICTURES, { recursive: true })
  await page.screenshot({
    path: join(PICTURES, `console-${name}.png`),
    fullPage: isWhole,
    animations: 'disabled',
  })
}
