// Who can change what is at a path. An addon is code of a signer node: from a place that another
// user can write, it is that user's.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'

const WRITE_BY_OTHERS = 0o022
const STICKY = 0o1000
const ROOT = 0

/** As ssh asks of its keys: of this user or root, and written by nobody else. null: so it is. */
function doubtOf(path, { uid, mode, isLink = false, isFolder = false }) {
  if (uid !== ROOT && uid !== process.getuid()) return `${path} belongs to user ${uid}`
  // In a folder such as /tmp, nobody renames or removes what is another's; a link has no mode of
  // its own.
  const isShared = isFolder && (mode & STICKY) !== 0 && uid === ROOT
  return (mode & WRITE_BY_OTHERS) !== 0 && !isShared && !isLink
    ? `${path} can be written by others`
    : null
}

const factsOf = (path) => {
  const stat = lstatSync(path)
  return {
    uid: stat.uid,
    mode: stat.mode,
    isLink: stat.isSymbolicLink(),
    isFolder: stat.isDirectory(),
  }
}

/**
 * Of a folder, each folder above it up to `top`, and what links among them lead to.
 * @param top the highest that is asked; by default the root of the file system
 */
export function doubtOfFolder(folder, top = '/') {
  for (const start of new Set([resolve(folder), realpathSync(folder)])) {
    for (let path = start; ; path = dirname(path)) {
      const doubt = doubtOf(path, factsOf(path))
      if (doubt !== null) return doubt
      if (path === top || path === dirname(path)) break
    }
  }
  return null
}

/**
 * A file's bytes, read once: what was looked at is what is used.
 * @param isAsked whether it must be this user's own or root's
 * @returns bytes, or doubt
 */
export function readOnce(path, isAsked) {
  const descriptor = openSync(path, constants.O_RDONLY | (isAsked ? constants.O_NOFOLLOW : 0))
  try {
    const { uid, mode } = fstatSync(descriptor)
    const doubt = isAsked ? doubtOf(path, { uid, mode }) : null
    return doubt === null ? { bytes: readFileSync(descriptor), doubt } : { bytes: null, doubt }
  } finally {
    closeSync(descriptor)
  }
}
