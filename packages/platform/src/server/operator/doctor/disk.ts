import { statfsSync } from 'node:fs'
import { ok, problem, warning, type Finding } from './findings.ts'

const MEBIBYTE = 1024 ** 2
const GIBIBYTE = 1024 ** 3
/**
 * Free space in bytes below which the platform soon stops accepting requests: it does so at 64 MiB.
 */
const ERROR_BYTES = 512 * MEBIBYTE
const WARNING_BYTES = 5 * GIBIBYTE
const FILES_MIN = 10_000

/**
 * Free space of a file system: bytes and files; `files` 0: the file system does not count files.
 */
export interface DiskSpace {
  bytes: number
  files: number
  filesFree: number
}

function roomOf(folder: string): DiskSpace {
  const { bavail, bsize, files, ffree } = statfsSync(folder)
  return { bytes: bavail * bsize, files, filesFree: ffree }
}

const sizeOf = (bytes: number): string =>
  bytes < GIBIBYTE ? `${Math.floor(bytes / MEBIBYTE)} MiB` : `${Math.floor(bytes / GIBIBYTE)} GiB`

/**
 * Returns the free space of a folder's disk.
 * @param what name of the folder, such as `the data folder`
 */
export function diagnoseDisk(
  what: string,
  folder: string,
  read: (folder: string) => DiskSpace = roomOf,
): Finding[] {
  let space: DiskSpace
  try {
    space = read(folder)
  } catch {
    return [ok('disk', `${what} ${folder} does not exist yet`)]
  }
  const message = `${sizeOf(space.bytes)} free on the disk of ${what} ${folder}`
  const advice =
    'delete files that do not belong to the platform, or enlarge the disk: below 64 MiB, no new requests are accepted'
  const match =
    space.bytes < ERROR_BYTES
      ? problem('disk', message, advice)
      : space.bytes < WARNING_BYTES
        ? warning('disk', message, advice)
        : ok('disk', message)
  if (space.files > 0 && space.filesFree < FILES_MIN) {
    const few = `only ${space.filesFree} more files fit on the disk of ${what} ${folder}`
    return [
      match,
      problem('disk', few, 'delete small files, or create a file system with more inodes'),
    ]
  }
  return [match]
}
