import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  type BigIntStats,
  type Dirent,
} from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { join, relative } from 'node:path'

export interface FileEntry {
  path: string
  bytes: number
  sha256: string
}

/** Number of bytes that are read in one call. */
const CHUNK = 1024 ** 2
/**
 * If a file is concurrently replaced by a link or a FIFO, the link is not followed and the open
 * does not block.
 */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * Returns why an entry of a backup folder is rejected before it is read; null: it is a regular file
 * with one name.
 */
function reasonAgainst(stats: BigIntStats): string | null {
  if (!stats.isFile()) return 'is not a regular file'
  return stats.nlink > 1n ? 'is a hard link: it has a second name' : null
}

function* entriesBelow(folder: string): Generator<{ path: string; entry: Dirent }> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    yield { path, entry }
    if (entry.isDirectory()) yield* entriesBelow(path)
  }
}

/**
 * Lists every entry below a folder by its relative name, without following links, with its kind and
 * the reason why it is rejected.
 */
export function listBelow(
  folder: string,
): Map<string, { isFolder: boolean; reason: string | null }> {
  return new Map(
    [...entriesBelow(folder)].map(({ path, entry }) => {
      const isFolder = entry.isDirectory()
      const reason =
        isFolder || entry.isFile()
          ? null
          : entry.isSymbolicLink()
            ? 'is a symbolic link'
            : 'is not a regular file'
      return [relative(folder, path), { isFolder, reason }]
    }),
  )
}

const reasonOfCode = (code: string | undefined): string =>
  code === 'ELOOP'
    ? 'is a symbolic link'
    : code === 'ENOENT'
      ? 'is missing'
      : `cannot be read (${code})`

/**
 * Opens a file.
 * @throws Error if it is a link, a special file or has a second name
 */
async function openFile(path: string): Promise<FileHandle> {
  let handle: FileHandle
  try {
    handle = await open(path, READ)
  } catch (error) {
    throw new Error(reasonOfCode((error as NodeJS.ErrnoException).code), { cause: error })
  }
  const reason = reasonAgainst(await handle.stat({ bigint: true }))
  if (reason === null) return handle
  await handle.close()
  throw new Error(reason)
}

async function* chunksOf(handle: FileHandle): AsyncGenerator<Buffer> {
  // Most files of a database are small, and a large buffer for each would be most of the time.
  const { size } = await handle.stat()
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK, size + 1))
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, null)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
  }
}

async function measure(
  handle: FileHandle,
  each: (chunk: Buffer) => Promise<void>,
): Promise<Omit<FileEntry, 'path'>> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of chunksOf(handle)) {
    hash.update(chunk)
    bytes += chunk.length
    await each(chunk)
  }
  return { bytes, sha256: hash.digest('hex') }
}

/**
 * Returns the size and hash of a file.
 * @throws Error that states the kind of the entry if it is not a regular file, without its name
 */
export async function measureFile(path: string): Promise<Omit<FileEntry, 'path'>> {
  const handle = await openFile(path)
  try {
    return await measure(handle, async () => undefined)
  } finally {
    await handle.close()
  }
}

/**
 * Compares a file's content with the manifest.
 * @returns the end of a sentence if they differ, otherwise null
 */
export function differenceOf(entry: FileEntry, match: Omit<FileEntry, 'path'>): string | null {
  if (match.bytes !== entry.bytes) return `has ${match.bytes} bytes, not ${entry.bytes}`
  return match.sha256 === entry.sha256 ? null : 'was changed'
}

/**
 * Copies one file of a backup and compares the copied bytes with the manifest, because the folder
 * may have changed since it was checked.
 * @throws Error that names the file
 */
export async function copyVerified(from: string, entry: FileEntry, to: string): Promise<void> {
  try {
    const source = await openFile(join(from, entry.path))
    try {
      const target = await open(to, 'wx', 0o600)
      try {
        const match = await measure(source, async (chunk) => {
          for (let at = 0; at < chunk.length;) at += (await target.write(chunk, at)).bytesWritten
        })
        const difference = differenceOf(entry, match)
        if (difference !== null) throw new Error(difference)
      } finally {
        await target.close()
      }
    } finally {
      await source.close()
    }
  } catch (error) {
    throw new Error(`${entry.path} ${(error as Error).message}`, { cause: error })
  }
}

/**
 * Reads a small file of a backup without following a link.
 * @throws Error that names it
 */
export function readPlain(path: string, name: string, bytesMax: number): Buffer {
  let handle: number
  try {
    handle = openSync(path, READ)
  } catch (error) {
    throw new Error(`${name} ${reasonOfCode((error as NodeJS.ErrnoException).code)}`, {
      cause: error,
    })
  }
  try {
    const stats = fstatSync(handle, { bigint: true })
    const reason = reasonAgainst(stats)
    if (reason !== null) throw new Error(`${name} ${reason}`)
    if (stats.size > BigInt(bytesMax))
      throw new Error(`${name} has ${stats.size} bytes; at most ${bytesMax} are allowed`)
    return readFileSync(handle)
  } finally {
    closeSync(handle)
  }
}

function sync(path: string): void {
  const handle = openSync(path, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

/** Flushes everything in a folder to disk, before the folder gets its final name. */
export function syncBelow(folder: string): void {
  for (const { path } of entriesBelow(folder)) sync(path)
  sync(folder)
}
