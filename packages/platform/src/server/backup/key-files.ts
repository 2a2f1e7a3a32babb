import { existsSync, readFileSync, statSync } from 'node:fs'
import { makeRecoveryPair, readRecoveryHalf, recoveryPublicOf } from './sealed.ts'
import { signatureKeyOf, signingKeyOf } from './signature.ts'

/**
 * Files of a recovery key: FILE (secret, offline), FILE.pub (public: encrypts secrets and verifies)
 * and FILE.sign (secret, signs backups).
 */
export interface RecoveryFiles {
  secret: string
  public: string
  signing: string
}

const KEY = /^[0-9a-f]{64}$/

/**
 * Creates the files of a recovery key.
 * @param secret an existing recovery secret in hex; null: a new key pair is generated
 */
export function makeRecoveryFiles(secret: string | null): RecoveryFiles {
  const pair = secret === null ? makeRecoveryPair() : { secret, public: recoveryPublicOf(secret) }
  const signing = signingKeyOf(pair.secret)
  return {
    secret: `${pair.secret}\n`,
    signing: `${signing}\n`,
    public: `${JSON.stringify({ public: pair.public, signature_key: signatureKeyOf(signing) })}\n`,
  }
}

function fieldOf(path: string, field: string): unknown {
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>)[field]
  } catch {
    return undefined
  }
}

/**
 * Reads the key that verifies the signatures of backups, from the public file of a recovery key.
 * @throws Error that names the option
 */
export function readSignatureKey(path: string, option: string): string {
  readRecoveryHalf(path, 'public', option)
  const key = fieldOf(path, 'signature_key')
  if (typeof key === 'string' && KEY.test(key)) return key
  throw new Error(
    `--${option}: ${path} contains no "signature_key", because an earlier version wrote it. ` +
      'Create it again from the recovery secret: npx custody backup-key --from SECRET --out FILE',
  )
}

/**
 * Reads the key that signs a backup: from a file, or from FILE.sign next to the public key; null if
 * there is neither.
 * @param path value of `--signing-key`; null: not given
 * @param publicFile value of `--recovery-key`; null: not given
 * @throws Error that names the option
 */
export function readSigningKey(path: string | null, publicFile: string | null): string | null {
  const sibling = publicFile?.endsWith('.pub') ? publicFile.replace(/\.pub$/, '.sign') : null
  const file = path ?? (sibling !== null && existsSync(sibling) ? sibling : null)
  if (file === null) {
    // The nodes' files of `local` contain both halves of the key.
    const secret = publicFile === null ? undefined : fieldOf(publicFile, 'secret')
    return typeof secret === 'string' && KEY.test(secret) ? signingKeyOf(secret) : null
  }
  const name = path === null ? file : `--signing-key: ${file}`
  let key: string
  try {
    if ((statSync(file).mode & 0o077) !== 0)
      throw new Error('other users may read it; run chmod 600')
    key = readFileSync(file, 'utf8').trim()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(`${name} cannot be used: ${code ?? message}`, { cause: error })
  }
  if (!KEY.test(key)) throw new Error(`${name} contains no signing key: 32 bytes in hex`)
  const expected = publicFile === null ? undefined : fieldOf(publicFile, 'signature_key')
  if (expected !== undefined && expected !== signatureKeyOf(key)) {
    throw new Error(`${name} is not the signing key of the recovery key in ${publicFile}`)
  }
  return key
}
