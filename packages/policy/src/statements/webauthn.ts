import { JsonNumber, parseJson } from '@custody/request-auth/web'
import { sha256 } from '@noble/hashes/sha2.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { base64urlnopad } from '@scure/base'
import { z } from 'zod'
import type { PersonKey } from '../document/people.ts'
import { PolicyError } from '../error.ts'
import { isSignatureOf, parseSpki } from '../keys.ts'
import { challengeOf, type Statement } from './shapes.ts'

/** A passkey of a document. */
export type Passkey = Extract<PersonKey, { kind: 'passkey' }>

const base64url = (charactersMax: number) =>
  z
    .string()
    .max(charactersMax)
    .regex(/^[A-Za-z0-9_-]+$/, 'must be base64url without padding')

/**
 * The response of an authenticator to `navigator.credentials.get`, as the JSON form of WebAuthn
 * Level 3 (AuthenticatorAssertionResponseJSON) contains it. Each field is base64url without padding.
 */
export const assertion = z.strictObject({
  client_data: base64url(1_400),
  authenticator_data: base64url(400),
  /** ES256: DER (WebAuthn, section 6.5.5). Ed25519: 64 bytes. */
  signature: base64url(100),
})
export type Assertion = z.output<typeof assertion>

/** Flags of authenticator data (WebAuthn Level 3, section 6.1). */
const FLAGS = {
  userPresent: 0x01,
  userVerified: 0x04,
  backupEligible: 0x08,
  backedUp: 0x10,
  attestedData: 0x40,
  extensions: 0x80,
} as const

/** Bytes of authenticator data: the hash of the RP ID, flags and the signature counter. */
const DATA_BYTES = 37

function refuse(field: string, message: string): never {
  throw new PolicyError('PASSKEY', field === '' ? 'passkey' : `passkey.${field}`, message)
}

function decode(field: keyof Assertion, text: string): Uint8Array {
  try {
    return base64urlnopad.decode(text)
  } catch {
    return refuse(field, 'is not base64url without padding')
  }
}

/** Parses client data. A name that appears twice is refused, as in every signed JSON text. */
function parseClientData(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown
  try {
    value = parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return refuse('client_data', 'is not a JSON text')
  }
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    value instanceof JsonNumber
  )
    return refuse('client_data', 'is not a JSON object')
  return value as Record<string, unknown>
}

function assertClientData({ origins }: Passkey, statement: Statement, bytes: Uint8Array): void {
  const data = parseClientData(bytes)
  if (data['type'] !== 'webauthn.get')
    refuse('client_data', 'must have the type webauthn.get: it is not an assertion')
  if (data['challenge'] !== challengeOf(statement))
    refuse('client_data', 'has another challenge: the passkey has signed another statement')
  const { origin } = data
  if (typeof origin !== 'string' || !origins.includes(origin))
    refuse('client_data', `must be from an origin of the key: ${origins.join(', ')}`)
  if (Object.hasOwn(data, 'topOrigin') || (data['crossOrigin'] ?? false) !== false)
    refuse('client_data', 'must not be from a page inside a page of another origin')
}

function assertAuthenticatorData({ rp_id, device_bound }: Passkey, bytes: Uint8Array): void {
  if (bytes.length < DATA_BYTES) refuse('authenticator_data', `must have ${DATA_BYTES} bytes`)
  const expected = sha256(utf8ToBytes(rp_id))
  if (expected.some((byte, at) => bytes[at] !== byte))
    refuse('authenticator_data', `must be for the domain ${rp_id}`)
  const flags = bytes[32]!
  const has = (flag: number): boolean => (flags & flag) !== 0
  if (!has(FLAGS.userPresent)) refuse('authenticator_data', 'must confirm that a user is present')
  if (!has(FLAGS.userVerified))
    refuse('authenticator_data', 'must confirm that the user was verified (PIN or biometrics)')
  if (has(FLAGS.backedUp) && !has(FLAGS.backupEligible))
    refuse('authenticator_data', 'has contradictory flags')
  if (device_bound && has(FLAGS.backupEligible))
    refuse('authenticator_data', 'is of a passkey that can be copied, and the key is device-bound')
  const mayBeLonger = has(FLAGS.attestedData) || has(FLAGS.extensions)
  if (bytes.length > DATA_BYTES && !mayBeLonger)
    refuse('authenticator_data', `must have ${DATA_BYTES} bytes`)
}

/**
 * Checks everything about an assertion except its signature, by WebAuthn Level 3, section 7.2: the
 * challenge is the statement, and origin, domain, user presence, user verification and backup flags
 * are those that the key requires. The signature counter is ignored: synchronized passkeys always
 * state 0, and nodes see the assertions in any order.
 * @throws PolicyError `PASSKEY`
 */
export function assertAssertion(key: Passkey, statement: Statement, passkey: Assertion): void {
  assertClientData(key, statement, decode('client_data', passkey.client_data))
  assertAuthenticatorData(key, decode('authenticator_data', passkey.authenticator_data))
}

/**
 * Returns whether a passkey has signed an assertion. This checks the signature only.
 * @see assertAssertion
 */
export function isSignedByPasskey({ alg, spki }: Passkey, passkey: Assertion): boolean {
  const signed = concatBytes(
    decode('authenticator_data', passkey.authenticator_data),
    sha256(decode('client_data', passkey.client_data)),
  )
  const format = alg === 'ES256' ? 'der' : 'compact'
  return isSignatureOf(
    parseSpki(alg, spki, 'key'),
    signed,
    decode('signature', passkey.signature),
    format,
  )
}
