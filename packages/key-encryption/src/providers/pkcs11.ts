import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { associatedData, dataKeyOf, fromBase64 } from '../binding.ts'
import { credential, line } from '../credential.ts'
import { KekError, type KekErrorCode } from '../errors.ts'
import type { SettingsOf } from '../settings.ts'
import type { KeyEncryption, Surroundings } from '../types.ts'

const IV_BYTES = 12

interface TokenKey {
  module: string
  token: string
  label: string
  id?: Uint8Array
  pin: Uint8Array
}
/** The addon's interface, as declared in Rust (`native/src/lib.rs`). */
interface Addon {
  wrapKey(
    key: TokenKey,
    aad: Uint8Array,
    dataKey: Uint8Array,
  ): Promise<{ id: Uint8Array; iv: Uint8Array; text: Uint8Array }>
  unwrapKey(key: TokenKey, aad: Uint8Array, iv: Uint8Array, text: Uint8Array): Promise<Uint8Array>
  generateKey(key: TokenKey): Promise<void>
}

function load(): Addon {
  const path = fileURLToPath(new URL('../../native/pkcs11.node', import.meta.url))
  if (!existsSync(path))
    throw new KekError('SETTING', 'pkcs11: the addon is not built: run `npm run compile`')
  return createRequire(import.meta.url)(path) as Addon
}

/**
 * The setting that an error of the token refers to, by the operation with which the addon's message
 * starts.
 */
const SETTINGS: Record<string, string> = {
  login: 'pin_file',
  module: 'module',
  token: 'token',
  slots: 'token',
  key: 'key',
  pin: 'pin_file',
}

function kekError(error: unknown): KekError {
  if (error instanceof KekError) return error
  const [code = '', message = ''] = (error instanceof Error ? error.message : String(error)).split(
    '|',
  )
  const existing: readonly string[] = ['AWAY', 'DENIED', 'NO_KEY', 'SETTING']
  if (code === 'SEALED') {
    return new KekError(
      'REFUSED',
      'pkcs11: the wrapped key cannot be decrypted: another key wrapped it, it belongs to another home, or its bytes were changed',
    )
  }
  const setting = SETTINGS[message.split(':')[0]!]
  const text = `pkcs11:${setting ? ` ${setting}:` : ''} ${message}`
  return new KekError(existing.includes(code) ? (code as KekErrorCode) : 'AWAY', text.slice(0, 300))
}

function placeOf(
  { module, token, key: label, id, pin_file: pin }: SettingsOf<'pkcs11'>,
  surroundings: Surroundings,
) {
  const read = credential('pkcs11: pin_file', pin, surroundings)
  // A missing module is an error of the setting, whatever the loader reports.
  if (!existsSync(module))
    throw new KekError('SETTING', `pkcs11: module: the file ${module} does not exist`)
  return (version: string | undefined = id): TokenKey => ({
    module,
    token,
    label,
    pin: Buffer.from(line(read())),
    ...(version === undefined ? {} : { id: Buffer.from(version, 'hex') }),
  })
}

/**
 * Opens a key that never leaves a token. Each call has its own session, so that nothing stays
 * logged in.
 */
export function openToken(
  settings: SettingsOf<'pkcs11'>,
  surroundings: Surroundings,
): KeyEncryption {
  const place = placeOf(settings, surroundings)
  const id = `pkcs11:${settings.token}/${settings.key}`
  const addon = load()
  return {
    id,
    async wrap(dataKey, binding) {
      try {
        const wrapped = await addon.wrapKey(place(), associatedData(binding), dataKey)
        return {
          kek_id: id,
          kek_version: Buffer.from(wrapped.id).toString('hex'),
          text: Buffer.concat([wrapped.iv, wrapped.text]).toString('base64'),
        }
      } catch (error) {
        throw kekError(error)
      }
    },
    async unwrap({ kek_version: version, text }, binding) {
      const bytes = fromBase64(text, 'pkcs11')
      if (!/^([0-9a-f]{2})+$/.test(version))
        throw new KekError('REFUSED', 'pkcs11: the version is not the id of a key')
      try {
        return dataKeyOf(
          await addon.unwrapKey(
            place(version),
            associatedData(binding),
            bytes.subarray(0, IV_BYTES),
            bytes.subarray(IV_BYTES),
          ),
          'pkcs11',
        )
      } catch (error) {
        throw kekError(error)
      }
    },
  }
}

/**
 * Creates an AES-256 key in the token, sensitive and not extractable, with the label and ID of the
 * settings.
 * @throws {KekError}
 */
export async function makeTokenKey(
  settings: SettingsOf<'pkcs11'>,
  surroundings: Surroundings,
): Promise<void> {
  if (settings.id === undefined)
    throw new KekError('SETTING', 'pkcs11: id: is required for a new key, in hexadecimal digits')
  try {
    await load().generateKey(placeOf(settings, surroundings)())
  } catch (error) {
    throw kekError(error)
  }
}
