import { PAGE_WAIT_MS } from '../../../testing/browser.ts'
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'

export const DESK = { width: 1440, height: 900 }
export const PHONE = { width: 390, height: 844 }
/** Folder for screenshots; if it is not set, no screenshots are made. */
const PICTURES = process.env['CUSTODY_SCREENSHOTS']

interface Violation {
  id: string
  nodes: { html: string }[]
}

/** A browser that visits the control panel of one origin and records every forbidden event. */
export class Visitor {
  /** Uncaught errors, violations of the content security policy, and requests to other origins. */
  readonly problems: string[] = []
  readonly origin: string
  readonly #browser: Browser

  constructor(browser: Browser, origin: string) {
    this.#browser = browser
    this.origin = origin
  }

  /** Opens a page in a new browser context. */
  async open(): Promise<{ page: Page; context: BrowserContext }> {
    const context = await this.#browser.newContext({
      locale: 'en-GB',
      timezoneId: 'UTC',
      colorScheme: 'light',
      reducedMotion: 'reduce',
      viewport: DESK,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    context.setDefaultTimeout(PAGE_WAIT_MS)
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
 * Asserts that axe finds no violation of any rule. The script of axe is loaded once per document,
 * because loading takes as long as a run.
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
 * Runs axe at desktop and phone width, with optional screenshots. At phone width nothing may be too
 * wide and no table cell may be cut off.
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
 * Returns the table cells that a phone does not display completely and whose content is not
 * available otherwise: cells beyond the edge of the table, over the next cell, cut off by an
 * ellipsis, or left out although the row opens no page.
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

/** Makes a screenshot if screenshots are enabled. */
export async function picture(page: Page, name: string, isWhole = false): Promise<void> {
  if (PICTURES === undefined) return
  mkdirSync(PICTURES, { recursive: true })
  await page.screenshot({
    path: join(PICTURES, `console-${name}.png`),
    fullPage: isWhole,
    animations: 'disabled',
  })
}
