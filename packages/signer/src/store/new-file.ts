import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** A removable disk's file system may have no folders that can be synchronised. */
function syncFolder(folder: string): void {
  try {
    const descriptor = openSync(folder, 'r')
    try {
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  } catch {}
}

/**
 * Writes a file that was not there before, closed to others: the whole of it or, where that fails,
 * none. Its name is taken first, so that nobody's file is written over; a link would do too, but
 * not every disk has links.
 * @throws the system's error; `EEXIST` where there is a file of that name
 */
export function writeNewFile(path: string, text: string): void {
  const draft = `${path}.draft`
  const taken: string[] = []
  const take = (name: string): void => {
    closeSync(openSync(name, 'wx', 0o600))
    taken.push(name)
  }
  try {
    take(path)
    take(draft)
    writeFileSync(draft, text, { flush: true })
    renameSync(draft, path)
  } catch (error) {
    for (const name of taken) rmSync(name, { force: true })
    throw error
  }
  syncFolder(dirname(path))
}
