import type { ChallengeView, CreationView } from '../views.ts'
import { Problem } from './api.ts'
import { passkeyProblem } from './passkey-problem.ts'

const TIMEOUT_MS = 120_000
/** COSE identifiers of ES256 and Ed25519, which the signer nodes verify. RS256 is not one of them. */
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

/**
 * Returns the handler of errors of one use of a passkey, which begins now.
 */
function failing(action: 'create' | 'sign'): (error: unknown) => never {
  const begun = performance.now()
  return (error) => {
    const { code, message } = passkeyProblem(error, {
      action,
      elapsedMs: performance.now() - begun,
      timeoutMs: TIMEOUT_MS,
      userAgent: navigator.userAgent,
    })
    throw new Problem(code, message)
  }
}

function assertSupported(): void {
  if (typeof PublicKeyCredential === 'undefined')
    throw new Problem('UNSUPPORTED', 'This browser does not support passkeys on this page.')
}

/** Signs a challenge with one passkey. @throws Problem */
export async function signChallenge({ challenge, rp_id, credential }: ChallengeView) {
  assertSupported()
  const failed = failing('sign')
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
    .catch(failed)
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
  const failed = failing('create')
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
    .catch(failed)
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
