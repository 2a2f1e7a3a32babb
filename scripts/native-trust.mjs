// Checks which users can change a file. An addon is code of a signer node, so it must not be in a
// place where another user can write.
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

/**
 * Checks ownership like ssh for its keys: the owner is this user or root, and no one else can
 * write. Returns the problem; null if there is none.
 */
function doubtOf(path, { uid, mode, isLink = false, isFolder = false }) {
  if (uid !== ROOT && uid !== process.getuid()) return `${path} belongs to user ${uid}`
  // In a folder such as /tmp, users cannot rename or remove files of others. A link has no mode of
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
 * Checks a folder, each folder above it up to `top`, and the targets of links among them.
 * @param top highest folder that is checked; by default the root of the file system
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
 * Reads a file's bytes once, so that the checked bytes are the used ones.
 * @param isAsked whether it must belong to this user or root
 * @returns bytes, or the problem
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
