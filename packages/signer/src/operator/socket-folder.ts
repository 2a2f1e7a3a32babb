import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** sun_path holds 108 bytes, one of them zero. */
const SOCKET_BYTES_MAX = 104
const NAME = /^custody-[0-9a-f]{16}$/

/**
 * Returns the path of the operator socket of a data folder: in the data folder, or in the temporary
 * folder if that path would be too long.
 */
export function socketPathOf(home: string): string {
  const path = join(home, 'operator.sock')
  if (Buffer.byteLength(path) <= SOCKET_BYTES_MAX) return path
  return join(
    tmpdir(),
    `custody-${createHash('sha256').update(home).digest('hex').slice(0, 16)}`,
    'operator.sock',
  )
}

/**
 * Creates the folder of a socket in the temporary folder, or checks an existing one: its name is
 * predictable, so another user may have created it first, as a folder of theirs or as a symbolic
 * link. A socket in the data folder needs no check here, because the data folder has been checked.
 * @throws Error that names the folder
 */
export function ensureSocketFolder(socket: string): void {
  const folder = dirname(socket)
  if (!NAME.test(folder.slice(dirname(folder).length + 1))) return
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  // Links are not followed, because the target of a link can change at any time.
  const match = lstatSync(folder)
  const isOwn = process.getuid === undefined || match.uid === process.getuid()
  if (match.isDirectory() && isOwn && (match.mode & 0o077) === 0) return
  const what = match.isSymbolicLink()
    ? 'is a symbolic link'
    : !match.isDirectory()
      ? 'is not a folder'
      : !isOwn
        ? `belongs to another user (uid ${match.uid})`
        : `is open to other users (mode 0${(match.mode & 0o777).toString(8)})`
  throw new Error(
    `${folder} ${what}; the operator's socket requires a folder of this user with mode 0700. Remove it, or use a shorter home path`,
  )
}
