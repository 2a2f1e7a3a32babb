import { createHash, sign, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { parsePrivateKey } from './keys.ts'
import { signedRequest, tokenInput, type TokenOptions } from './token.ts'
import type { SignedRequest } from './types.ts'

const signAsync = promisify(sign) as (
  algorithm: string,
  data: Buffer,
  key: KeyObject,
) => Promise<Buffer>

export interface SignOptions extends TokenOptions {
  /** PEM (PKCS#8 or PKCS#1) or a KeyObject. */
  privateKey: string | KeyObject
}

/**
 * Returns the lower-case hex SHA-256 of the body as UTF-8; of the empty string if there is no body.
 */
export function bodyHash(body: string | Uint8Array): string {
  return createHash('sha256').update(body).digest('hex')
}

/** Creates the JWT (RS256) of one request. */
export async function signRequest(options: SignOptions): Promise<SignedRequest> {
  const input = tokenInput(options, bodyHash(options.body ?? ''))
  const key =
    typeof options.privateKey === 'string'
      ? parsePrivateKey(options.privateKey)
      : options.privateKey
  return signedRequest(options, input, await signAsync('RSA-SHA256', Buffer.from(input), key))
}
