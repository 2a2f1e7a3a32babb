import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { pkcs8OfPem, UNREADABLE_KEY } from './pem.ts'
import { signedRequest, tokenInput, type TokenOptions } from './token.ts'
import { AuthError, type SignedRequest } from './types.ts'

const ALGORITHM = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }

/**
 * A key of WebCrypto, which does not need to be extractable: RSASSA-PKCS1-v1_5 with SHA-256, for
 * signing.
 */
export interface WebKey {
  readonly type: string
  readonly extractable: boolean
  readonly algorithm: { readonly name: string }
  readonly usages: readonly string[]
}

/** The part of `node:crypto`'s KeyObject that is used here. */
export interface NodeKey {
  readonly type: string
  readonly asymmetricKeyType?: string | undefined
  export(options: { type: 'pkcs8'; format: 'der' }): Uint8Array
}

/** PEM (PKCS#8 or PKCS#1), a KeyObject on Node, or a CryptoKey. */
export type PrivateKey = string | NodeKey | WebKey

/** Creates signed requests with one key. */
export type RequestSigner = (options: TokenOptions) => Promise<SignedRequest>

const refuse = (sentence: string): never => {
  throw new AuthError('private_key', sentence)
}

type Imported = Parameters<typeof globalThis.crypto.subtle.sign>[1]

/** Pages loaded over plain HTTP, except from localhost, have no WebCrypto. */
function subtle(): typeof globalThis.crypto.subtle {
  const match = (globalThis as { crypto?: { subtle?: typeof globalThis.crypto.subtle } }).crypto
    ?.subtle
  return (
    match ??
    refuse('cannot be used here: WebCrypto is not available (a page requires https, or localhost)')
  )
}

function assertUsable(key: WebKey): void {
  const { name, hash } = key.algorithm as { name: string; hash?: { name?: string } }
  if (name !== ALGORITHM.name || hash?.name !== ALGORITHM.hash)
    refuse(`is for ${name}: RSASSA-PKCS1-v1_5 with SHA-256 is required`)
  if (key.type !== 'private' || !key.usages.includes('sign'))
    refuse('is not for signing: a private key with usage "sign" is required')
}

/**
 * Returns a signer that uses WebCrypto: in browsers, Deno, Bun and Node. The key's format is
 * checked here; the key is imported at the first request.
 * @throws AuthError with claim `private_key` and a sentence that contains no part of the key
 */
export function requestSigner(privateKey: PrivateKey): RequestSigner {
  let imported: () => Promise<Imported>
  const importing = (pkcs8: Uint8Array<ArrayBuffer>) => async () => {
    try {
      return await subtle().importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign'])
    } catch (error) {
      return error instanceof AuthError ? refuse(error.message) : refuse(UNREADABLE_KEY)
    }
  }
  if (typeof privateKey === 'string') imported = importing(pkcs8OfPem(privateKey))
  else if ('export' in privateKey) {
    if (privateKey.type !== 'private')
      refuse('is a public key: requests are signed with the private key')
    const kind = privateKey.asymmetricKeyType
    if (kind !== 'rsa') refuse(`is a key of ${String(kind)}: an RSA key is required`)
    imported = importing(Uint8Array.from(privateKey.export({ type: 'pkcs8', format: 'der' })))
  } else {
    assertUsable(privateKey)
    imported = async () => privateKey as unknown as Imported
  }
  let key: Promise<Imported> | undefined
  return async (options) => {
    const input = tokenInput(options, bodyHash(options.body ?? ''))
    const own = await (key ??= imported())
    const signature = await subtle().sign(ALGORITHM.name, own, Uint8Array.from(utf8ToBytes(input)))
    return signedRequest(options, input, new Uint8Array(signature))
  }
}

/**
 * Returns the lower-case hex SHA-256 of the body as UTF-8; of the empty string if there is no body.
 */
function bodyHash(body: string): string {
  return bytesToHex(sha256(utf8ToBytes(body)))
}
