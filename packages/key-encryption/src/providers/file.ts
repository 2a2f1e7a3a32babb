import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { pathOf } from '../credential.ts'
import { KekError } from '../errors.ts'
import type { SettingsOf } from '../settings.ts'
import type { KeyEncryption, Surroundings } from '../types.ts'
import { heldKek } from './local.ts'

const KEY_BYTES = 32

function read(path: string): Buffer {
  const fail = (why: string): never => {
    throw new KekError('SETTING', `file: path: ${path} ${why}`)
  }
  let descriptor: number
  try {
    descriptor = openSync(path, 'r')
  } catch (error) {
    return fail(`cannot be read (${String((error as NodeJS.ErrnoException).code)})`)
  }
  try {
    const { mode, size, uid } = fstatSync(descriptor)
    if ((mode & 0o077) !== 0) fail('is readable by other users; it must have mode 600')
    if (uid !== process.geteuid!() && uid !== 0) fail('belongs to another user')
    if (size !== KEY_BYTES) fail('must contain exactly 32 bytes')
    const key = readFileSync(descriptor)
    if (key.every((byte) => byte === key[0])) fail('is not random')
    return key
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Opens a key file: 32 random bytes that only their owner can read. For local use, or if the disk
 * itself is encrypted with a key that is stored elsewhere.
 */
export function openFile(
  { path: setting }: SettingsOf<'file'>,
  surroundings: Surroundings,
): KeyEncryption {
  const path = pathOf('file: path', setting, surroundings)
  return heldKek(`file:${setting}`, 'file: path', async () => read(path))
}

/** Creates the key file if it does not exist. Never replaces one. */
export function makeKeyFile(
  { path: setting }: SettingsOf<'file'>,
  surroundings: Surroundings,
): void {
  const path = pathOf('file: path', setting, surroundings)
  if (existsSync(path)) return
  writeFileSync(path, randomBytes(KEY_BYTES), { mode: 0o600, flag: 'wx', flush: true })
  const folder = openSync(dirname(path), 'r')
  fsyncSync(folder)
  closeSync(folder)
}
