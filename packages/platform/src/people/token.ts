import { createHash } from 'node:crypto'
import type { Environment } from '../environment.ts'

const TOKEN_BYTES = 32

/** 256 random bits for a cookie or a link, in base64url: 43 characters. */
export const newToken = (environment: Environment): string =>
  Buffer.from(environment.bytes(TOKEN_BYTES)).toString('base64url')

/**
 * What is stored of a token. It is found by this, so that no comparison tells how much of one was
 * right.
 */
export const hashOfToken = (token: string): Buffer => createHash('sha256').update(token).digest()
