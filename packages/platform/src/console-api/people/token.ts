import { createHash } from 'node:crypto'
import type { Environment } from '../../core/environment.ts'

const TOKEN_BYTES = 32

/** Returns 256 random bits for a cookie or a link, in base64url: 43 characters. */
export const newToken = (environment: Environment): string =>
  Buffer.from(environment.bytes(TOKEN_BYTES)).toString('base64url')

/**
 * Returns the stored hash of a token. Tokens are looked up by this hash, so that no comparison
 * reveals how many characters of a token were correct.
 */
export const hashOfToken = (token: string): Buffer => createHash('sha256').update(token).digest()
