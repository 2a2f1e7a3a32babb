import {
  makeEntry,
  openKeys,
  parseKeyFile,
  writeKeyFile,
  type Binding,
  type KekSettings,
  type KeyFile,
  type Surroundings,
} from '@custody/key-encryption'
import { createCipheriv, createDecipheriv } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Environment } from './environment.ts'

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const VERSION = 1

const bindingOf = (name: string): Binding => ({ purpose: 'custody/platform/secrets-key', name })
const surroundingsOf = (file: string, env: NodeJS.ProcessEnv): Surroundings => ({
  folder: dirname(file),
  env,
})

/**
 * Returns the file that CUSTODY_SECRETS_KEY names (`@FILE`); null if it contains the key itself, or
 * is not set.
 */
export const secretsFile = (setting: string | null): string | null =>
  setting?.startsWith('@') ? resolve(setting.slice(1)) : null

/**
 * Reads a file of the secrets key: the key itself, or one that is wrapped by a key-encryption key.
 */
function read(file: string): { key: Buffer } | { wrapped: KeyFile } {
  const bytes = readFileSync(file)
  if (bytes.length === KEY_BYTES) return { key: bytes }
  return { wrapped: parseKeyFile(bytes.toString('utf8'), file) }
}

async function keyOf(file: string, env: NodeJS.ProcessEnv): Promise<Buffer> {
  const stored = read(file)
  if ('key' in stored) return stored.key
  const [opened] = await openKeys(stored.wrapped, surroundingsOf(file, env), bindingOf)
  return Buffer.from(opened!.key.buffer, opened!.key.byteOffset, opened!.key.length)
}

export interface SecretsKeyStatus {
  provider: string
  kek_id: string | null
  kek_version: string | null
}

/** Returns which provider wraps the secrets key; `none`: it is not encrypted. */
export function secretsKeyStatus(file: string): SecretsKeyStatus {
  const stored = read(file)
  if ('key' in stored) return { provider: 'none', kek_id: null, kek_version: null }
  const { kek, kek_id, kek_version } = stored.wrapped.keys[0]!
  return { provider: kek.kind, kek_id, kek_version }
}

/**
 * Wraps the secrets key with a key-encryption key, the first or another one. The key itself stays
 * the same, because everything in the database is encrypted with it. The file is replaced
 * atomically; unencrypted bytes are overwritten.
 * @throws KekError
 */
export async function wrapSecretsKey(
  file: string,
  settings: KekSettings,
  env: NodeJS.ProcessEnv,
): Promise<SecretsKeyStatus> {
  if (settings.kind === 'file' && resolve(dirname(file), settings.path) === resolve(file)) {
    throw new Error('--kek: file: the secrets key cannot wrap itself: choose another file')
  }
  const key = await keyOf(file, env)
  const entry = await makeEntry(settings, surroundingsOf(file, env), bindingOf, key)
  key.fill(0)
  const before = openSync(file, 'r+')
  try {
    writeKeyFile(file, { version: 1, keys: [entry] })
    writeSync(before, Buffer.alloc(fstatSync(before).size), 0, undefined, 0)
    fsyncSync(before)
  } finally {
    closeSync(before)
  }
  return secretsKeyStatus(file)
}

/**
 * Encrypts third-party secrets (such as keys of screening providers) for the database: AES-256-GCM,
 * bound to their owner.
 */
export class Secrets {
  readonly #key: Buffer
  readonly #environment: Environment

  /**
   * Uses a key that is in memory.
   * @param key 32 bytes
   */
  constructor(key: Uint8Array, environment: Environment) {
    if (key.length !== KEY_BYTES)
      throw new Error(`the secrets key has ${key.length} bytes, not ${KEY_BYTES}`)
    this.#key = Buffer.from(key)
    this.#environment = environment
  }

  /**
   * Opens the key of CUSTODY_SECRETS_KEY (base64, or `@FILE`), otherwise of `secrets.key` in the
   * data folder, which is created at the first start. A wrapped key is unwrapped once, now, so the
   * provider may be unavailable afterwards.
   * @throws KekError if it cannot be unwrapped
   */
  static async open(
    home: string,
    setting: string | null,
    environment: Environment,
    env: NodeJS.ProcessEnv = process.env,
  ): Promise<Secrets> {
    const named = secretsFile(setting)
    if (named !== null) return new Secrets(await keyOf(named, env), environment)
    if (setting !== null) {
      const key = Buffer.from(setting, 'base64')
      if (key.length !== KEY_BYTES)
        throw new Error(`CUSTODY_SECRETS_KEY: must be ${KEY_BYTES} bytes in base64`)
      return new Secrets(key, environment)
    }
    const file = join(home, 'secrets.key')
    if (!existsSync(file)) {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      try {
        writeFileSync(file, Buffer.from(environment.bytes(KEY_BYTES)), {
          mode: 0o600,
          flag: 'wx',
          flush: true,
        })
      } catch (error) {
        // Another process with this data folder has created the file first.
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
    }
    return new Secrets(await keyOf(file, env), environment)
  }

  /**
   * Encrypts a secret.
   * @param owner context of the secret; it can only be decrypted with the same context
   */
  seal(owner: string, text: string): Buffer {
    const nonce = this.#environment.bytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(owner))
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), sealed])
  }

  /**
   * Decrypts a secret.
   * @throws Error if the key or the owner differs, or the bytes were changed
   */
  open(owner: string, sealed: Uint8Array): string {
    const bytes = Buffer.from(sealed)
    const body = 1 + NONCE_BYTES + TAG_BYTES
    if (bytes[0] !== VERSION || bytes.length < body)
      throw new Error('a stored secret has an unknown format')
    const decipher = createDecipheriv(
      'aes-256-gcm',
      this.#key,
      bytes.subarray(1, 1 + NONCE_BYTES),
      { authTagLength: TAG_BYTES },
    )
      .setAAD(Buffer.from(owner))
      .setAuthTag(bytes.subarray(1 + NONCE_BYTES, body))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(body)), decipher.final()]).toString(
        'utf8',
      )
    } catch {
      throw new Error(
        'a stored secret cannot be decrypted: check whether it was encrypted with another secrets key',
      )
    }
  }
}
