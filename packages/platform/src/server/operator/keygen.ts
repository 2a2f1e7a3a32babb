import { fingerprintOfKey } from '@custody/request-auth'
import { generateKeyPair, type KeyObject } from 'node:crypto'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { OperatorError } from './command.ts'

const generate = promisify(generateKeyPair)

/** Generates a key pair of an API caller (`rsa`) or of an approver (`ed25519`). */
async function pairOf(type: string): Promise<{ privateKey: KeyObject; publicKey: KeyObject }> {
  if (type === 'rsa') return generate('rsa', { modulusLength: 4096, publicExponent: 65_537 })
  if (type === 'ed25519') return generate('ed25519')
  throw new OperatorError('--type: must be rsa or ed25519')
}

/**
 * Generates a key pair: FILE contains the private key (mode 0600), FILE.pub the public one. Never
 * overwrites a file. `spki`: base64 of the DER public key, as policy documents contain it.
 */
export async function keygen(
  values: Record<string, string | boolean | undefined>,
): Promise<{ result: Record<string, unknown>; text: string | string[] }> {
  const file = resolve(typeof values['out'] === 'string' ? values['out'] : 'custody-key.pem')
  const type = typeof values['type'] === 'string' ? values['type'] : 'rsa'
  for (const path of [file, `${file}.pub`]) {
    if (existsSync(path))
      throw new OperatorError(`${path} already exists; choose another file with --out`)
  }
  const { privateKey, publicKey } = await pairOf(type)
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), {
    mode: 0o600,
    flag: 'wx',
  })
  writeFileSync(`${file}.pub`, publicKey.export({ type: 'spki', format: 'pem' }), { flag: 'wx' })
  chmodSync(`${file}.pub`, 0o644)
  const fingerprint = fingerprintOfKey(publicKey)
  const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  return {
    result: {
      private_key: file,
      public_key: `${file}.pub`,
      key_fingerprint: fingerprint,
      ...(type === 'ed25519' ? { spki } : {}),
    },
    text: [
      `private key: ${file} (keep it secret)`,
      `public key:  ${file}.pub`,
      `SHA-256:     ${fingerprint}`,
      ...(type === 'ed25519' ? [`spki:        ${spki}`] : []),
    ],
  }
}
