import { createHash, sign, type KeyObject } from 'node:crypto'
import type { Assertion, Passkey } from '../src/statements/webauthn.ts'
import { statementBytes, type Statement } from '../src/statements/shapes.ts'
import type { SignedStatement } from '../src/statements/verify.ts'
import { newKey } from './documents.ts'

/** A passkey with its private key, as an authenticator holds it. */
export interface TestPasskey {
  readonly key: Passkey
  readonly privateKey: KeyObject
}

/** Flags of authenticator data (WebAuthn Level 3, section 6.1). */
export const UP = 0x01
export const UV = 0x04
export const BE = 0x08
export const BS = 0x10
export const ED = 0x80

/** Returns a new passkey of `http://localhost:24873`. */
export function newPasskey(
  id: string,
  alg: 'Ed25519' | 'ES256' = 'ES256',
  fields: Partial<Passkey> = {},
): TestPasskey {
  const { key, privateKey } = newKey(id, alg)
  return {
    privateKey,
    key: {
      ...key,
      kind: 'passkey',
      credential: Buffer.from(`credential-of-${id}`).toString('base64url'),
      rp_id: 'localhost',
      origins: ['http://localhost:24873'],
      device_bound: true,
      ...fields,
    },
  }
}

/** What an authenticator and a browser put into an assertion. */
export interface AssertionParts {
  /** Fields of the client data; undefined leaves one out. */
  client?: Record<string, unknown>
  /** Text of the client data instead of its JSON. */
  clientText?: string | Uint8Array
  flags?: number
  rpId?: string
  counter?: number
  /** Bytes after the signature counter. */
  rest?: Uint8Array
}

/** Signs a statement as a browser and an authenticator do, with node:crypto. */
export function assertionOf(
  { key, privateKey }: TestPasskey,
  statement: Statement,
  parts: AssertionParts = {},
): Assertion {
  const challenge = createHash('sha256').update(statementBytes(statement)).digest('base64url')
  const client = Buffer.from(
    parts.clientText ??
      JSON.stringify({
        type: 'webauthn.get',
        challenge,
        origin: key.origins[0],
        crossOrigin: false,
        ...parts.client,
      }),
  )
  const counter = Buffer.alloc(4)
  counter.writeUInt32BE(parts.counter ?? 0)
  const data = Buffer.concat([
    createHash('sha256')
      .update(parts.rpId ?? key.rp_id)
      .digest(),
    Buffer.from([parts.flags ?? UP | UV]),
    counter,
    parts.rest ?? Buffer.alloc(0),
  ])
  const signed = Buffer.concat([data, createHash('sha256').update(client).digest()])
  // An ECDSA key of node:crypto signs in DER by default, as authenticators do.
  const signature = sign(key.alg === 'ES256' ? 'sha256' : null, signed, privateKey)
  return {
    client_data: client.toString('base64url'),
    authenticator_data: data.toString('base64url'),
    signature: signature.toString('base64url'),
  }
}

/** Returns a statement with the assertion of a passkey. */
export const signWithPasskey = (
  passkey: TestPasskey,
  statement: Statement,
  parts?: AssertionParts,
): SignedStatement => ({ statement, passkey: assertionOf(passkey, statement, parts) })
