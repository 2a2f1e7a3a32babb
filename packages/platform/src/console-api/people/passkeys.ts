import { isIP } from 'node:net'
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server'
import { stringifyJson } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Environment } from '../../core/environment.ts'
import type { From } from './sessions.ts'

/**
 * Ed25519, ES256 and RS256, which authenticators support. A newer version of Node would offer
 * others first by default.
 */
const ALGORITHMS = [-8, -7, -257]
const RP_NAME = 'Custody'
const CHALLENGE_BYTES = 32

// Loads the library on first use, because its certificate parsers take a tenth of the start time.
const webauthn = () => import('@simplewebauthn/server')

/**
 * Returns the host that passkeys of a page are bound to; null for an IP address, which cannot have
 * passkeys.
 */
export function rpIdOf(origin: string): string | null {
  const { hostname } = new URL(origin)
  return isIP(hostname.replaceAll(/[[\]]/g, '')) === 0 ? hostname : null
}

/**
 * Returns the host that passkeys of a page are bound to.
 * @throws ApiError `PASSKEY_UNAVAILABLE` that names the origin where passkeys are available
 */
function needRpId(origin: string): string {
  const rpId = rpIdOf(origin)
  if (rpId !== null) return rpId
  const { port } = new URL(origin)
  throw new ApiError(
    'PASSKEY_UNAVAILABLE',
    `passkeys are bound to a host name, not to an IP address: open http://localhost:${port}/console`,
  )
}

/** Returns the options by which a browser creates a passkey, and the challenge that it signs. */
export async function registrationOptions(
  environment: Environment,
  tx: Queryable,
  from: From,
  person: { id: string; email: string; name: string },
): Promise<{ options: PublicKeyCredentialCreationOptionsJSON; challenge: string }> {
  const rpID = needRpId(from.origin)
  const { generateRegistrationOptions } = await webauthn()
  const existing = await tx.query<{ credential_id: string }>(
    'select credential_id from passkeys where person_id = $1',
    [person.id],
  )
  const options = await generateRegistrationOptions({
    rpName: RP_NAME,
    rpID,
    userName: person.email,
    userDisplayName: person.name,
    userID: new TextEncoder().encode(person.id),
    challenge: new Uint8Array(environment.bytes(CHALLENGE_BYTES)),
    attestationType: 'none',
    supportedAlgorithmIDs: ALGORITHMS,
    excludeCredentials: existing.map(({ credential_id }) => ({ id: credential_id })),
    // The passkey is found without a user name and is unlocked by fingerprint, face or PIN, so it
    // counts as two factors.
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  })
  return { options, challenge: options.challenge }
}

/** Stored data of a new passkey. */
export interface NewPasskey {
  credentialId: string
  publicKey: Buffer
  counter: number
  transports: string[]
}

/**
 * Verifies a browser's response to a registration.
 * @throws ApiError `SIGN_IN_FAILED` if it does not match the options
 */
export async function verifyRegistration(
  response: unknown,
  { challenge, origin }: { challenge: string; origin: string },
): Promise<NewPasskey> {
  const { verifyRegistrationResponse } = await webauthn()
  try {
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: plain(response) as RegistrationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: needRpId(origin),
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    })
    if (!verified) throw new Error('not verified')
    const { id, publicKey, counter, transports } = registrationInfo.credential
    return {
      credentialId: id,
      publicKey: Buffer.from(publicKey),
      counter,
      transports: [...(transports ?? [])],
    }
  } catch {
    throw new ApiError(
      'SIGN_IN_FAILED',
      'response: is not a passkey that was just created for this page',
      {
        field: 'response',
      },
    )
  }
}

export async function addPasskey(
  tx: Queryable,
  environment: Environment,
  personId: string,
  passkey: NewPasskey,
  name: string,
): Promise<string> {
  const id = environment.uuid()
  const added = await tx.one(
    `insert into passkeys (id, person_id, credential_id, public_key, counter, transports, name,
      created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (credential_id) do nothing returning id`,
    [
      id,
      personId,
      passkey.credentialId,
      passkey.publicKey,
      passkey.counter,
      passkey.transports,
      name,
      tx.now(),
    ],
  )
  if (!added)
    throw new ApiError('SIGN_IN_FAILED', 'response: this passkey is already registered', {
      field: 'response',
    })
  return id
}

/**
 * Returns the options by which a browser signs with a passkey: any passkey for this host, because
 * the person has not given a name yet.
 */
export async function authenticationOptions(
  environment: Environment,
  from: From,
): Promise<{ options: PublicKeyCredentialRequestOptionsJSON; challenge: string }> {
  const rpID = needRpId(from.origin)
  const { generateAuthenticationOptions } = await webauthn()
  const options = await generateAuthenticationOptions({
    rpID,
    challenge: new Uint8Array(environment.bytes(CHALLENGE_BYTES)),
    userVerification: 'required',
    allowCredentials: [],
  })
  return { options, challenge: options.challenge }
}

/**
 * Verifies a browser's response and returns the owner of its passkey.
 * @throws ApiError `SIGN_IN_FAILED`
 */
export async function takePasskey(
  tx: Queryable,
  response: unknown,
  { challenge, origin }: { challenge: string; origin: string },
): Promise<{ personId: string; passkey: string }> {
  const failed = new ApiError(
    'SIGN_IN_FAILED',
    'the passkey is not registered, or its response does not belong to this request',
  )
  const { id } = (plain(response) ?? {}) as { id?: unknown }
  const row =
    typeof id !== 'string'
      ? undefined
      : await tx.one<{
          id: string
          person_id: string
          credential_id: string
          public_key: Buffer
          counter: string
        }>(
          `select id, person_id, credential_id, public_key, counter from passkeys
            where credential_id = $1 for update`,
          [id],
        )
  if (!row) throw failed
  const { verifyAuthenticationResponse } = await webauthn()
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: plain(response) as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: needRpId(origin),
      requireUserVerification: true,
      // The library rejects a response whose counter did not increase, which indicates a copied
      // authenticator.
      credential: {
        id: row.credential_id,
        publicKey: new Uint8Array(row.public_key),
        counter: Number(row.counter),
      },
    })
    if (!verified) throw failed
    await tx.query('update passkeys set counter = $2, last_used_at = $3 where id = $1', [
      row.id,
      authenticationInfo.newCounter,
      tx.now(),
    ])
    return { personId: row.person_id, passkey: row.id }
  } catch {
    throw failed
  }
}

/**
 * Converts the response for the library, because numbers in a request body are exact decimals here.
 */
const plain = (response: unknown): unknown => JSON.parse(stringifyJson(response))
