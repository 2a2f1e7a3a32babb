import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { basename, delimiter, posix, win32 } from 'node:path'
import { ApproverError } from '../errors.ts'

/** A browser of this machine, with the option that opens a private window. */
export interface Browser {
  /** Path of the program. */
  path: string
  option: '--incognito' | '--inprivate' | '-private-window'
}

/** What the search for a browser reads of the machine. */
export interface Machine {
  platform: NodeJS.Platform
  env: Record<string, string | undefined>
  exists: (path: string) => boolean
}

const THIS_MACHINE: Machine = { platform: process.platform, env: process.env, exists: existsSync }

/** Names of the programs on Linux. Flatpak names them by their applications. */
const LINUX_NAMES = [
  'google-chrome',
  'google-chrome-stable',
  'chromium',
  'chromium-browser',
  'microsoft-edge',
  'microsoft-edge-stable',
  'firefox',
  'firefox-esr',
  'brave-browser',
  'com.google.Chrome',
  'org.chromium.Chromium',
  'com.microsoft.Edge',
  'org.mozilla.firefox',
]
/** Folders of Linux that are searched after those of PATH. */
const LINUX_FOLDERS = ['/usr/bin', '/snap/bin', '/var/lib/flatpak/exports/bin']
/** Programs of macOS below a folder of applications. */
const MAC_PROGRAMS = [
  'Google Chrome.app/Contents/MacOS/Google Chrome',
  'Chromium.app/Contents/MacOS/Chromium',
  'Microsoft Edge.app/Contents/MacOS/Microsoft Edge',
  'Firefox.app/Contents/MacOS/firefox',
  'Brave Browser.app/Contents/MacOS/Brave Browser',
]
/** Programs of Windows below a folder of programs. */
const WINDOWS_PROGRAMS = [
  String.raw`Google\Chrome\Application\chrome.exe`,
  String.raw`Microsoft\Edge\Application\msedge.exe`,
  String.raw`Mozilla Firefox\firefox.exe`,
  String.raw`BraveSoftware\Brave-Browser\Application\brave.exe`,
]

/** Returns the browser of a program, by the name of the program. */
function browserOf(path: string): Browser {
  const name = basename(path.replaceAll('\\', '/')).toLowerCase()
  const option = name.includes('firefox')
    ? '-private-window'
    : name.includes('edge')
      ? '--inprivate'
      : '--incognito'
  return { path, option }
}

/** Returns the paths at which browsers are installed, in the order in which they are preferred. */
function pathsOf({ platform, env }: Machine): string[] {
  if (platform === 'darwin') {
    const folders = ['/Applications', ...(env['HOME'] ? [`${env['HOME']}/Applications`] : [])]
    return MAC_PROGRAMS.flatMap((program) => folders.map((folder) => posix.join(folder, program)))
  }
  if (platform === 'win32') {
    const folders = ['ProgramFiles', 'ProgramFiles(x86)', 'LOCALAPPDATA'].flatMap(
      (name) => env[name] ?? [],
    )
    return WINDOWS_PROGRAMS.flatMap((program) =>
      folders.map((folder) => win32.join(folder, program)),
    )
  }
  const folders = [...(env['PATH'] ?? '').split(delimiter), ...LINUX_FOLDERS].filter(
    (folder) => folder !== '',
  )
  return LINUX_NAMES.flatMap((name) => folders.map((folder) => posix.join(folder, name)))
}

/**
 * Returns an installed browser that opens private windows by an option of its command line; null if
 * there is none, or if the machine has no screen.
 * @param program path of the browser to use instead
 * @throws ApproverError `OPTION` if that file does not exist
 */
export function findBrowser(
  program: string | undefined,
  machine: Machine = THIS_MACHINE,
): Browser | null {
  const { platform, env, exists } = machine
  if (program !== undefined) {
    if (!exists(program)) throw new ApproverError('OPTION', `--browser: ${program} does not exist`)
    return browserOf(program)
  }
  const hasScreen =
    platform === 'darwin' ||
    platform === 'win32' ||
    Boolean(env['DISPLAY'] ?? env['WAYLAND_DISPLAY'])
  const path = hasScreen ? pathsOf(machine).find(exists) : undefined
  return path === undefined ? null : browserOf(path)
}

/**
 * Opens a URL in a private window, which continues when this program ends. A browser that is running
 * opens the window, and the started program ends.
 * @returns whether the program could be started
 */
export function openPrivateWindow({ path, option }: Browser, url: string): Promise<boolean> {
  return new Promise((done) => {
    const child = spawn(path, [option, url], { detached: true, stdio: 'ignore' })
    child.once('error', () => done(false))
    child.once('spawn', () => {
      child.unref()
      done(true)
    })
  })
}
