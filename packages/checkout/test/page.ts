import assert from 'node:assert/strict'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'

/** Widths at which everything is looked at. */
export const PHONE: BrowserContextOptions = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, colorScheme: 'light' }
export const DESK: BrowserContextOptions = { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' }

/** On a machine that has much else to do. */
const WAIT_MS = 20_000

interface Observed { /** What the layout moved by itself */ moved: string[]; violations: string[] }

/** A page of a context of its own, and what must hold of every page: see {@link Visit.clean}. */
export interface Visit {
  page: Page
  /** Nothing was asked of another origin, the policy was not broken, nothing was thrown, nothing moved by itself. */
  clean(): Promise<void>
  close(): Promise<void>
}

/** Runs in every document before its own scripts. */
function observe(): void {
  const observed: Observed = { moved: [], violations: [] }
  Object.assign(window, { observed })
  addEventListener('securitypolicyviolation', (event) => observed.violations.push(`${event.violatedDirective} ${event.blockedURI}`))
  new PerformanceObserver((list) => {
    // Chromium's own entries; what follows an input within half a second is left out, as the metric says.
    for (const entry of list.getEntries() as (PerformanceEntry & { hadRecentInput: boolean; sources: { node: Node | null }[] })[]) {
      if (entry.hadRecentInput) continue
      observed.moved.push(...entry.sources.map(({ node }) => (node instanceof Element ? node.outerHTML.slice(0, 120) : 'something')))
    }
  }).observe({ type: 'layout-shift', buffered: true })
}

/** @param origins that may be asked beside the first page's own */
export async function visit(browser: Browser, url: string, options: BrowserContextOptions = PHONE, origins: string[] = []): Promise<Visit> {
  const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'], ...options })
  context.setDefaultTimeout(WAIT_MS)
  const page = await context.newPage()
  const allowed = new Set([new URL(url).origin, ...origins])
  const strangers: string[] = []
  const thrown: string[] = []
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    if (protocol !== 'data:' && !allowed.has(origin)) strangers.push(request.url())
  })
  page.on('pageerror', (error) => thrown.push(error.message))
  await page.addInitScript(observe)
  await page.goto(url)
  return {
    page,
    async clean() {
      const { moved, violations } = await page.evaluate(() => (window as unknown as { observed: Observed }).observed)
      assert.deepEqual({ strangers, thrown, violations, moved }, { strangers: [], thrown: [], violations: [], moved: [] })
    },
    close: () => context.close(),
  }
}

const title = (page: Page) => page.locator('.status-title')

/** Waits until the status says so. */
export async function says(page: Page, words: string): Promise<void> {
  await title(page).filter({ hasText: words }).waitFor({ timeout: WAIT_MS })
}

/** The pixels of an element, as a camera would see them. */
export async function pixels(page: Page, selector: string): Promise<{ data: Uint8ClampedArray<ArrayBuffer>; width: number; height: number }> {
  const png = (await page.locator(selector).screenshot()).toString('base64')
  const reader = await page.context().newPage()
  const { text, width, height } = await reader.evaluate(async (source) => {
    const image = new Image()
    image.src = source
    await image.decode()
    const canvas = new OffscreenCanvas(image.width, image.height)
    const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D
    context.drawImage(image, 0, 0)
    const { data } = context.getImageData(0, 0, image.width, image.height)
    return { text: new TextDecoder('latin1').decode(data), width: image.width, height: image.height }
  }, `data:image/png;base64,${png}`)
  await reader.close()
  // TextDecoder's latin1 is windows-1252; black and white are the same in both.
  return { data: Uint8ClampedArray.from(Buffer.from(text, 'latin1')), width, height }
}
