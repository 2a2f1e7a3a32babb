import { chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** The folder of all data, as CUSTODY_HOME names it. */
export const homeOf = (env: NodeJS.ProcessEnv): string => resolve(env['CUSTODY_HOME'] || '.custody')

/** Each missing folder by itself: where one cannot be made, Node's own recursive call tries for ever (/proc, a dangling link). */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  if (dirname(path) !== path) makeFolder(dirname(path))
  mkdirSync(path, { mode: 0o700 })
}

/** Makes the data folder, closed to others, and takes it for this process. */
export function takeHome(home: string): () => void {
  makeFolder(home)
  chmodSync(home, 0o700)
  const file = join(home, 'platform.pid')
  if (existsSync(file)) {
    const pid = Number(readFileSync(file, 'utf8'))
    if (Number.isInteger(pid) && pid > 1 && pid !== process.pid && isPlatform(pid)) {
      throw new Error(`the platform runs on ${home} already (process ${pid}); stop it first or set another CUSTODY_HOME`)
    }
  }
  writeFileSync(file, String(process.pid), { mode: 0o600 })
  return () => rmSync(file, { force: true })
}

/**
 * Makes a folder that only this user may enter, or checks that an existing one is such: below the temporary
 * folder somebody else may have been there first.
 */
export function closedFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const { uid, mode } = lstatSync(path)
  if (process.getuid && (uid !== process.getuid() || (mode & 0o077) !== 0)) {
    throw new Error(`${path} must belong to this user and be closed to others: remove it, or choose a shorter CUSTODY_HOME`)
  }
}

function isPlatform(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('platform/src/') : true
  } catch {
    return false
  }
}
