import { argon2 } from 'node:crypto'
import { promisify } from 'node:util'
import { credential, line } from '../credential.ts'
import { KekError } from '../errors.ts'
import type { SettingsOf } from '../settings.ts'
import type { KeyEncryption, Surroundings } from '../types.ts'
import { heldKek } from './local.ts'

const LETTERS_MIN = 12
/** RFC 9106, second recommended option, but with one lane: 64 MiB, three passes. About 0.2 s. */
const COST = { parallelism: 1, tagLength: 32, memory: 65_536, passes: 3 }

/**
 * Opens a key that is derived from a passphrase, which an operator enters, or which a host passes
 * in a file, a descriptor or a credential.
 */
export function openPassphrase(
  { file, salt }: SettingsOf<'passphrase'>,
  surroundings: Surroundings,
): KeyEncryption {
  if (!salt) throw new KekError('SETTING', 'passphrase: salt: is missing')
  const place = file ?? surroundings.passphraseFile
  const setting = file ? 'passphrase: file' : 'CUSTODY_SIGNER_PASSPHRASE_FILE'
  if (!place) {
    throw new KekError(
      'SETTING',
      'passphrase: file: set a file or descriptor (such as /dev/fd/3); at a signer node set it in CUSTODY_SIGNER_PASSPHRASE_FILE',
    )
  }
  const read = credential(setting, place, surroundings)
  let key: Promise<Buffer> | null = null
  return heldKek(
    `passphrase:${salt}`,
    setting,
    () =>
      (key ??= (async () => {
        const message = line(read())
        if (message.trim().length < LETTERS_MIN) {
          throw new KekError(
            'SETTING',
            `${setting}: the passphrase must have at least ${LETTERS_MIN} characters`,
          )
        }
        return promisify(argon2)('argon2id', { ...COST, message, nonce: Buffer.from(salt, 'hex') })
      })()),
  )
}
