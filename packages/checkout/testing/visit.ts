import { PAGE_WAIT_MS } from '../../../testing/browser.ts'
import assert from 'node:assert/strict'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

/** Widths at which every page is checked. */
export const PHONE: BrowserContextOptions = {
  viewport: { width: 360, height: 740 },
  isMobile: true,
  hasTouch: true,
  colorScheme: 'light',
}
export const DESK: BrowserContextOptions = {
  viewport: { width: 1280, height: 800 },
  colorScheme: 'dark',
}

interface Observed {
  /** Elements that the layout moved without user input */ moved: string[]
  violations: string[]
}

/** A page in its own context, and conditions that hold for every page: see {@link Visit.clean}. */
export interface Visit {
  page: Page
  /**
   * Checks that there was no request to another origin, no violation of the policy, no exception
   * and no layout shift.
   */
  clean(): Promise<void>
  close(): Promise<void>
}

/**
 * Runs in every document before its own scripts. It is a text, so that tests of other packages need
 * no types of browsers.
 */
const OBSERVE = `
window.observed = { moved: [], violations: [] }
addEventListener('securitypolicyviolation', (event) => observed.violations.push(event.violatedDirective + ' ' + event.blockedURI))
new PerformanceObserver((list) => {
  // What follows an input within half a second is left out, as the metric of layout shifts says.
  for (const { hadRecentInput, sources } of list.getEntries()) {
    if (!hadRecentInput) observed.moved.push(...sources.map(({ node }) => (node instanceof Element ? node.outerHTML.slice(0, 120) : 'something')))
  }
}).observe({ type: 'layout-shift', buffered: true })`

/** @param origins that requests may use besides the first page's own */
export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = PHONE,
  origins: string[] = [],
): Promise<Visit> {
  const context = await browser.newContext({
    locale: 'en-GB',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  })
  context.setDefaultTimeout(PAGE_WAIT_MS)
  const page = await context.newPage()
  const allowed = new Set([new URL(url).origin, ...origins])
  const strangers: string[] = []
  const thrown: string[] = []
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    if (protocol !== 'data:' && !allowed.has(origin)) strangers.push(request.url())
  })
  page.on('pageerror', (error) => thrown.push(error.message))
  await page.addInitScript({ content: OBSERVE })
  await page.goto(url)
  return {
    page,
    async clean() {
      const { moved, violations } = await page.evaluate<Observed>('observed')
      assert.deepEqual(
        { strangers, thrown, violations, moved },
        { strangers: [], thrown: [], violations: [], moved: [] },
      )
    },
    close: () => context.close(),
  }
}

const title = (page: Page) => page.locator('.status-title')

/** Waits until the status has the expected text. */
export async function says(page: Page, words: string): Promise<void> {
  await title(page).filter({ hasText: words }).waitFor()
}
