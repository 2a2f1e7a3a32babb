import { existsSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'

/** The headless shell comes first, because it needs half of the processor time. */
const PLACES = [
  '/usr/lib/chromium/chromium-headless-shell',
  '/usr/bin/chromium-headless-shell',
  '/usr/lib/chromium/chromium',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/**
 * Starts a real browser that makes no connections of its own.
 * @throws Error if no browser is installed; the message says what to install
 */
export async function startBrowser(): Promise<Browser> {
  const named = process.env['CUSTODY_CHROMIUM']
  const executablePath = named ?? PLACES.find((path) => existsSync(path))
  if (executablePath === undefined || !existsSync(executablePath))
    throw new Error(
      `no Chromium was found${named === undefined ? '' : ` at CUSTODY_CHROMIUM=${named}`}: install it (Debian: apt-get install chromium-headless-shell), ` +
        'or name the file in CUSTODY_CHROMIUM',
    )
  return chromium.launch({
    executablePath,
    headless: true,
    // A test file ends on a signal; the browser ends when its pipe closes.
    handleSIGTERM: false,
    handleSIGINT: false,
    handleSIGHUP: false,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-dev-shm-usage',
    ],
  })
}
