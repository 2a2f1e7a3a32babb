import { createCipheriv, createDecipheriv } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Environment } from './environment.ts'

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const VERSION = 1

/** Seals secrets of others (keys of screening providers) for the database: AES-256-GCM, bound to where they belong. */
export class Secrets {
  readonly #key: Buffer
  readonly #environment: Environment

  /** @param key 32 bytes */
  constructor(key: Uint8Array, environment: Environment) {
    if (key.length !== KEY_BYTES) throw new Error(`the secrets key has ${key.length} bytes, not ${KEY_BYTES}`)
    this.#key = Buffer.from(key)
    this.#environment = environment
  }

  /** The key of CUSTODY_SECRETS_KEY (base64), else of `secrets.key` in the home, made there at the first start. */
  static open(home: string, setting: string | null, environment: Environment): Secrets {
    if (setting !== null) {
      const key = Buffer.from(setting, 'base64')
      if (key.length !== KEY_BYTES) throw new Error(`CUSTODY_SECRETS_KEY: must be ${KEY_BYTES} bytes in base64`)
      return new Secrets(key, environment)
    }
    const file = join(home, 'secrets.key')
    if (!existsSync(file)) {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      try {
        writeFileSync(file, Buffer.from(environment.bytes(KEY_BYTES)), { mode: 0o600, flag: 'wx', flush: true })
      } catch (error) {
        // Another process of this home was first.
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
    }
    return new Secrets(readFileSync(file), environment)
  }

  /** @param owner where the secret belongs; it opens nowhere else */
  seal(owner: string, text: string): Buffer {
    const nonce = this.#environment.bytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(owner))
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), sealed])
  }

  /** @throws Error where the key is another, the bytes were changed, or they belong elsewhere */
  open(owner: string, sealed: Uint8Array): string {
    const bytes = Buffer.from(sealed)
    const body = 1 + NONCE_BYTES + TAG_BYTES
    if (bytes[0] !== VERSION || bytes.length < body) throw new Error('a sealed secret has an unknown form')
    const decipher = createDecipheriv(
      'aes-256-gcm', this.#key, bytes.subarray(1, 1 + NONCE_BYTES), { authTagLength: TAG_BYTES }
    ).setAAD(Buffer.from(owner)).setAuthTag(bytes.subarray(1 + NONCE_BYTES, body))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(body)), decipher.final()]).toString('utf8')
    } catch {
      throw new Error('a sealed secret does not open: was it sealed with another secrets key?')
    }
  }
}
