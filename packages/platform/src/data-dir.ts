import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** The folder of all data, as CUSTODY_HOME names it. */
export const dataDirOf = (env: NodeJS.ProcessEnv): string =>
  resolve(env['CUSTODY_HOME'] || '.custody')

export const signersFolder = (home: string) => join(home, 'signers')
/**
 * Where the platform's client key and the nodes' addresses are: CUSTODY_SIGNERS, else in the home.
 */
export const identityFolder = (home: string): string =>
  process.env['CUSTODY_SIGNERS'] || join(signersFolder(home), 'platform')

/**
 * Each missing folder by itself: where one cannot be made, Node's own recursive call tries for ever
 * (/proc, a dangling link).
 */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  if (dirname(path) !== path) makeFolder(dirname(path))
  mkdirSync(path, { mode: 0o700 })
}

/** Makes the data folder, closed to others. */
export function createDataDir(home: string): void {
  makeFolder(home)
  chmodSync(home, 0o700)
}

/** Lies in a data folder while a backup is restored into it. */
export const RESTORING = 'restore-unfinished'

/**
 * @throws where a restore was begun in the data folder and did not come to its end: it lacks its
 *   database, or nodes that know it
 */
export function assertRestored(home: string): void {
  if (!existsSync(join(home, RESTORING))) return
  throw new Error(
    `${home} contains an interrupted restore: remove its contents, and run the same command again`,
  )
}

/** Makes the data folder and takes it for this process: no other that takes it starts there. */
export function lockDataDir(home: string): () => void {
  assertRestored(home)
  createDataDir(home)
  const file = join(home, 'platform.pid')
  if (existsSync(file)) {
    const pid = Number(readFileSync(file, 'utf8'))
    if (Number.isInteger(pid) && pid > 1 && pid !== process.pid && isPlatform(pid)) {
      throw new Error(
        `the platform already runs on ${home} (process ${pid}); stop it first or set another CUSTODY_HOME`,
      )
    }
  }
  writeFileSync(file, String(process.pid), { mode: 0o600 })
  return () => rmSync(file, { force: true })
}

/**
 * Makes a folder that only this user may enter, or checks that an existing one is such: below the
 * temporary folder somebody else may have been there first.
 */
export function createPrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const { uid, mode } = lstatSync(path)
  if (process.getuid && (uid !== process.getuid() || (mode & 0o077) !== 0)) {
    throw new Error(
      `${path} must belong to this user and be inaccessible to others: remove it, or choose a shorter CUSTODY_HOME`,
    )
  }
}

/** Room that is left on the disk of a folder; null where that is not told. */
export function freeBytes(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return null
  }
}

/**
 * What is under way goes on with this much: it needs some, and a database server whose log finds no
 * room ends.
 */
const ROOM_BYTES_MIN = 64 * 1024 ** 2
const ROOM_KEPT_MS = 1000

/**
 * Tells, as often as it is asked, why nothing new should be begun: the data folder's disk is full,
 * or nearly; null where it is not.
 */
export function shortageOf(
  home: string,
  clock: () => number,
  bytesMin = ROOM_BYTES_MIN,
): () => string | null {
  let [lookedAt, shortage] = [-Infinity, null as string | null]
  return () => {
    const atMs = clock()
    if (Math.abs(atMs - lookedAt) < ROOM_KEPT_MS) return shortage
    lookedAt = atMs
    const free = freeBytes(home)
    const mebibytes = Math.round(bytesMin / 1024 ** 2)
    // What a file system does not tell is no reason to stop.
    shortage =
      free !== null && free < bytesMin
        ? `the disk of the data folder has less than ${mebibytes} MiB left`
        : null
    return shortage
  }
}

function isPlatform(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return existsSync(`/proc/${pid}/cmdline`)
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('platform/src/')
      : true
  } catch {
    return false
  }
}
