import { existsSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { chromium, type Browser } from 'playwright-core'

/** Folder of the browser that `npm test` installs from npm where no other one is installed. */
export const OWN_BROWSER = join(
  import.meta.dirname,
  '../scripts/browser/node_modules/.extracted/chromium',
)
/** The headless shell comes first, because it needs half of the processor time. */
const NAMES = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'microsoft-edge',
]
const PLACES = [
  '/usr/lib/chromium/chromium-headless-shell',
  '/usr/lib/chromium/chromium',
  '/opt/google/chrome/chrome',
  '/opt/microsoft/msedge/msedge',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge',
]
/** Time in milliseconds after which a page has hung. Machines and their load differ. */
export const PAGE_WAIT_MS = 120_000
export const HOW_TO_GET_A_BROWSER =
  'install Chromium (Debian: apt-get install chromium-headless-shell), or set CUSTODY_CHROMIUM to the path of Chromium, Chrome or Edge'

/**
 * Returns the path of the browser for tests: the one that CUSTODY_CHROMIUM names, an installed one,
 * or the one from npm; `null` if there is none.
 * @throws Error if CUSTODY_CHROMIUM names a file that does not exist
 */
export function findBrowser(): string | null {
  const named = process.env['CUSTODY_CHROMIUM']
  if (named !== undefined && named !== '') {
    if (!existsSync(named)) throw new Error(`CUSTODY_CHROMIUM=${named}: this file does not exist`)
    return named
  }
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const installed = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)))
  return [...PLACES, ...installed, OWN_BROWSER].find((path) => existsSync(path)) ?? null
}

/**
 * Starts a real browser that makes no connections of its own.
 * @throws Error if no browser is installed; the message says what to install
 */
export async function startBrowser(): Promise<Browser> {
  const executablePath = findBrowser()
  if (executablePath === null) throw new Error(`no browser was found: ${HOW_TO_GET_A_BROWSER}`)
  return chromium.launch({
    executablePath,
    headless: true,
    // A test file ends on a signal; the browser ends when its pipe closes.
    handleSIGTERM: false,
    handleSIGINT: false,
    handleSIGHUP: false,
    ...(executablePath === OWN_BROWSER ? { env: ownEnvironment() } : {}),
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-dev-shm-usage',
    ],
  })
}

/** Environment of the browser from npm, which brings the libraries and fonts that hosts may lack. */
function ownEnvironment(): Record<string, string> {
  const folder = dirname(OWN_BROWSER)
  const inherited = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  return {
    ...Object.fromEntries(inherited),
    LD_LIBRARY_PATH: join(folder, 'al2023', 'lib'),
    FONTCONFIG_PATH: join(folder, 'fonts'),
  }
}
