import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** The file system of a removable disk may not support synchronising folders. */
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
 * Writes a new file that other users cannot read: completely or, after an error, not at all. The
 * name is created first, so that no existing file is overwritten; a link would have the same
 * effect, but not every file system supports links.
 * @throws the system's error; `EEXIST` if a file of that name exists
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
