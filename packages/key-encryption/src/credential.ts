import { readFileSync, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { KekError } from './errors.ts'
import type { Surroundings } from './types.ts'

const BYTES_MAX = 65_536
const DESCRIPTOR = /^\/(dev\/fd|proc\/self\/fd)\/\d+$/
/** What descriptors gave: each gives its bytes once in a process. */
const given = new Map<string, Buffer>()

/** A file's bytes, or a descriptor's, which are kept. @throws the system's error */
export function readSecret(path: string): Buffer {
  if (!DESCRIPTOR.test(path)) return readFileSync(path)
  const bytes = given.get(path) ?? readFileSync(path)
  given.set(path, bytes)
  return bytes
}

/**
 * The path that a setting means: absolute, below the folder, or `credential:NAME`, a credential
 * that systemd hands over.
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
 * Reads a secret, each time anew, since agents replace the file; a descriptor once, since it gives
 * its bytes once.
 * @throws {KekError} SETTING: not there, empty, too long, or open to others
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

/** The text of a secret without the line's end. */
export const line = (bytes: Buffer): string => bytes.toString('utf8').replace(/\r?\n$/, '')
