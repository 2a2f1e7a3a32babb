import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  AuthError,
  signRequest,
  verifyRequest,
  type Claims,
  type SignedRequest,
  type SignOptions,
  type VerifyOptions,
} from '../src/index.ts'

export const API_KEY = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
export const NOW = 1_900_000_000
export const URI = '/dac/v1/transaction'

export interface Pair {
  publicKey: KeyObject
  privateKey: KeyObject
}

/**
 * Returns an RSA key pair. Generating an RSA-4096 pair takes seconds, so a test file creates one.
 */
export function rsaPair(bits = 4096, exponent = 65_537): Pair {
  return generateKeyPairSync('rsa', { modulusLength: bits, publicExponent: exponent })
}

/** Returns functions that sign and verify one kind of request with one pair. */
export function issuer(pair: Pair) {
  const sign = (options: Partial<SignOptions> = {}) =>
    signRequest({
      apiKey: API_KEY,
      privateKey: pair.privateKey,
      method: 'POST',
      uri: URI,
      body: '{"asset":"BTC"}',
      now: NOW,
      ...options,
    })
  const verify = (request: SignedRequest, options: Partial<VerifyOptions> = {}): Promise<Claims> =>
    verifyRequest({
      request,
      apiKey: API_KEY,
      publicKey: pair.publicKey,
      now: NOW,
      age: 'live',
      ...options,
    })
  /** Signs a request with replaced claims; `undefined` removes a claim. */
  const withClaims = (claims: Record<string, unknown>, options: Partial<SignOptions> = {}) =>
    sign({ claims, ...options })
  return { sign, verify, withClaims }
}

/** Checks that a request is refused and the error names the claim. */
export async function refuses(
  promise: Promise<unknown>,
  claim: string,
  message?: RegExp,
): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof AuthError, `not an AuthError: ${String(error)}`)
    assert.equal(error.claim, claim, error.message)
    if (message) assert.match(error.message, message)
    return true
  })
}

export function refusesSync(work: () => unknown, claim: string, message?: RegExp): void {
  assert.throws(work, (error: unknown) => {
    assert.ok(error instanceof AuthError, `not an AuthError: ${String(error)}`)
    assert.equal(error.claim, claim, error.message)
    if (message) assert.match(error.message, message)
    return true
  })
}

/**
 * Returns a valid RSA-4096 key whose PEM contains these lines, which is possible because the person
 * who makes a key chooses its modulus.
 * @param lines letters and digits only
 */
export function keyWithLines(pem: string, lines: readonly string[]): string {
  const base64 = pem.replace(/-----[^-]+-----|\s/g, '')
  const chosen = lines.join('')
  const padded = chosen.padEnd(Math.ceil(chosen.length / 4) * 4, 'A')
  // Within the modulus, at the start of a group of four base64 characters: the first and last bits
  // of the modulus do not change.
  const at = 256
  const rest = padded.slice(chosen.length) + base64.slice(at + padded.length)
  const body = [
    ...(base64.slice(0, at).match(/.{1,64}/g) ?? []),
    ...lines,
    ...(rest.match(/.{1,64}/g) ?? []),
  ]
  return `-----BEGIN PUBLIC KEY-----\n${body.join('\n')}\n-----END PUBLIC KEY-----`
}
