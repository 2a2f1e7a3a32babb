import type { ChallengeView, CreationView } from '../views.ts'
import { Problem } from './api.ts'

const TIMEOUT_MS = 120_000
/** COSE identifiers of ES256 and Ed25519. */
const ALGORITHMS = [-7, -8]

const toText = (buffer: ArrayBuffer): string => {
  let text = ''
  for (const byte of new Uint8Array(buffer)) text += String.fromCharCode(byte)
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

const toBytes = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) =>
    character.charCodeAt(0),
  )

/** Converts an error of the person or of their authenticator. */
function rejected(error: unknown): never {
  const name = error instanceof Error ? error.name : ''
  if (name === 'NotAllowedError' || name === 'AbortError')
    throw new Problem(
      'CANCELLED',
      'The passkey was not used: you cancelled it, it ran out of time, or this device has no matching passkey.',
    )
  if (name === 'InvalidStateError')
    throw new Problem('EXISTS', 'This authenticator already has this passkey.')
  if (name === 'NotSupportedError')
    throw new Problem('ALGORITHM', 'This authenticator supports neither ES256 nor Ed25519.')
  throw new Problem('PASSKEY', error instanceof Error ? error.message : String(error))
}

function assertSupported(): void {
  if (typeof PublicKeyCredential === 'undefined')
    throw new Problem('UNSUPPORTED', 'This browser does not support passkeys on this page.')
}

/** Signs a challenge with one passkey. @throws Problem */
export async function signChallenge({ challenge, rp_id, credential }: ChallengeView) {
  assertSupported()
  const created = await navigator.credentials
    .get({
      publicKey: {
        challenge: toBytes(challenge),
        rpId: rp_id,
        allowCredentials: [{ type: 'public-key', id: toBytes(credential) }],
        userVerification: 'required',
        timeout: TIMEOUT_MS,
      },
    })
    .catch(rejected)
  const response = (created as PublicKeyCredential).response as AuthenticatorAssertionResponse
  return {
    client_data: toText(response.clientDataJSON),
    authenticator_data: toText(response.authenticatorData),
    signature: toText(response.signature),
  }
}

/** Creates a passkey. @throws Problem */
export async function createPasskey({ challenge, rp, user_id, user_name }: CreationView) {
  assertSupported()
  const created = await navigator.credentials
    .create({
      publicKey: {
        challenge: toBytes(challenge),
        rp,
        user: { id: toBytes(user_id), name: user_name, displayName: user_name },
        pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
        authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
        attestation: 'none',
        timeout: TIMEOUT_MS,
      },
    })
    .catch(rejected)
  const credential = created as PublicKeyCredential
  const response = credential.response as AuthenticatorAttestationResponse
  const spki = response.getPublicKey()
  if (spki === null)
    throw new Problem('ALGORITHM', 'The browser cannot read the public key of this passkey.')
  return {
    credential: toText(credential.rawId),
    spki: toText(spki),
    algorithm: response.getPublicKeyAlgorithm(),
    client_data: toText(response.clientDataJSON),
    authenticator_data: toText(response.getAuthenticatorData()),
  }
}
