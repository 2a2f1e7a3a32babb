import { readFileSync, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { KekError } from './errors.ts'
import type { Surroundings } from './types.ts'

const BYTES_MAX = 65_536
const DESCRIPTOR = /^\/(dev\/fd|proc\/self\/fd)\/\d+$/
/** Bytes read from file descriptors, each of which can be read only once in a process. */
const input = new Map<string, Buffer>()

/**
 * Reads a file, or a descriptor, whose bytes are cached.
 * @throws the system's error
 */
export function readSecret(path: string): Buffer {
  if (!DESCRIPTOR.test(path)) return readFileSync(path)
  const bytes = input.get(path) ?? readFileSync(path)
  input.set(path, bytes)
  return bytes
}

/**
 * Returns the path that a setting means: absolute, below the folder, or `credential:NAME`, a
 * credential that systemd passes to the process.
 */
export function pathOf(setting: string, value: string, { folder, env }: Surroundings): string {
  const named = /^credential:([A-Za-z0-9._-]+)$/.exec(value)
  if (!named) return isAbsolute(value) ? value : join(folder, value)
  const directory = env['CREDENTIALS_DIRECTORY']
  if (!directory)
    throw new KekError(
      'SETTING',
      `${setting}: ${value} requires CREDENTIALS_DIRECTORY, which systemd sets (LoadCredential=)`,
    )
  return join(directory, named[1]!)
}

/**
 * Reads a secret. Files are read every time, because agents replace them; a descriptor is read
 * once, because it returns its bytes only once.
 * @throws {KekError} SETTING: missing, empty, too long, or readable by others
 */
export function credential(
  setting: string,
  value: string,
  surroundings: Surroundings,
): () => Buffer {
  return () => {
    const path = pathOf(setting, value, surroundings)
    let bytes: Buffer
    try {
      if (!DESCRIPTOR.test(path) && (statSync(path).mode & 0o007) !== 0) {
        throw new KekError(
          'SETTING',
          `${setting}: ${path} is accessible to other users: run chmod 600`,
        )
      }
      bytes = readSecret(path)
    } catch (error) {
      if (error instanceof KekError) throw error
      throw new KekError(
        'SETTING',
        `${setting}: ${path} cannot be read (${String((error as NodeJS.ErrnoException).code)})`,
      )
    }
    if (bytes.length === 0 || bytes.length > BYTES_MAX)
      throw new KekError('SETTING', `${setting}: ${path} is empty or too long`)
    return bytes
  }
}

/** Returns the text of a secret without the trailing line end. */
export const line = (bytes: Buffer): string => bytes.toString('utf8').replace(/\r?\n$/, '')
