import { fingerprintOfKey, parsePublicKey } from '@custody/request-auth'
import { generateKeyPair } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { OperatorError } from './command.ts'

const generate = promisify(generateKeyPair)

/**
 * Generates an RSA-4096 key pair: FILE contains the private key (mode 0600), FILE.pub the public
 * one. Never overwrites a file.
 */
export async function keygen(
  values: Record<string, string | boolean | undefined>,
): Promise<{ result: Record<string, unknown>; text: string | string[] }> {
  const file = resolve(typeof values['out'] === 'string' ? values['out'] : 'custody-key.pem')
  for (const path of [file, `${file}.pub`]) {
    if (existsSync(path))
      throw new OperatorError(`${path} already exists; choose another file with --out`)
  }
  const { privateKey, publicKey } = await generate('rsa', {
    modulusLength: 4096,
    publicExponent: 65_537,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: {
      type: 'spki',
      format: 'pem',
    },
  })
  writeFileSync(file, privateKey, { mode: 0o600, flag: 'wx' })
  writeFileSync(`${file}.pub`, publicKey, { mode: 0o644, flag: 'wx' })
  const fingerprint = fingerprintOfKey(parsePublicKey(publicKey))
  return {
    result: { private_key: file, public_key: `${file}.pub`, key_fingerprint: fingerprint },
    text: [
      `private key: ${file} (keep it secret)`,
      `public key:  ${file}.pub`,
      `SHA-256:     ${fingerprint}`,
    ],
  }
}
