import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { byMode, type NetworkMode } from '@custody/chains/mode'

/** Returns the data folder, which CUSTODY_HOME sets. */
export const dataDirOf = (env: NodeJS.ProcessEnv): string =>
  resolve(env['CUSTODY_HOME'] || '.custody')

/**
 * Whether the platform starts the three signer nodes itself. In a rehearsal it does unless CUSTODY_SIGNERS
 * names nodes of other hosts.
 */
export const runsNodes = (network: NetworkMode): boolean =>
  byMode(network, { local: true, regtest: !process.env['CUSTODY_SIGNERS'], mainnet: false })

export const signersFolder = (home: string) => join(home, 'signers')
/**
 * Returns the folder of the platform's client key and of the nodes' addresses: CUSTODY_SIGNERS,
 * otherwise in the data folder.
 */
export const identityFolder = (home: string): string =>
  process.env['CUSTODY_SIGNERS'] || join(signersFolder(home), 'platform')

/**
 * Creates each missing folder separately, because Node's recursive call never ends if a folder
 * cannot be created (/proc, a dangling link).
 */
function makeFolder(path: string): void {
  if (existsSync(path)) return
  if (dirname(path) !== path) makeFolder(dirname(path))
  mkdirSync(path, { mode: 0o700 })
}

/** Folder of the embedded database, whose server may run as another user and sets its own modes. */
const DATABASE_FOLDER = 'postgres'

/**
 * Removes the rights of other users from everything in a folder. Earlier versions relied on the
 * mode of the folder alone.
 */
function closeContents(folder: string, skipped?: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isSymbolicLink() || entry.name === skipped) continue
    const path = join(folder, entry.name)
    const state = lstatSync(path, { throwIfNoEntry: false })
    if (!state) continue
    if ((state.mode & 0o077) !== 0) chmodSync(path, state.mode & 0o700)
    if (entry.isDirectory()) closeContents(path)
  }
}

/** Creates the data folder. Other users can access neither it nor its contents. */
export function createDataDir(home: string): void {
  makeFolder(home)
  chmodSync(home, 0o700)
  closeContents(home, DATABASE_FOLDER)
}

/** Name of the file that is in a data folder while a backup is being restored into it. */
export const RESTORING = 'restore-unfinished'

/**
 * Checks that no restore was interrupted.
 * @throws Error if a restore into the data folder was started and not completed: the database, or
 *   the nodes that belong to it, are missing
 */
export function assertRestored(home: string): void {
  if (!existsSync(join(home, RESTORING))) return
  throw new Error(
    `${home} contains an interrupted restore: remove its contents, and run the same command again`,
  )
}

/**
 * Creates the data folder and locks it for this process, so that no other process that locks it can
 * start.
 */
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
 * Creates a folder that only this user can access, or checks that an existing one is private,
 * because another user may have created a folder below the temporary folder.
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

/** Returns the free bytes on the disk of a folder; null if they are unknown. */
export function freeBytes(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return null
  }
}

/**
 * Free space in bytes that is reserved for operations in progress; a database server without space
 * for its WAL stops.
 */
const ROOM_BYTES_MIN = 64 * 1024 ** 2
const ROOM_KEPT_MS = 1000

/**
 * Returns a function that checks the data folder's disk: it returns the reason why no new operation
 * may start if the disk is full or nearly full, otherwise null.
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
    // If the file system does not report its free space, operations are not stopped.
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
