import {
  startAuthentication,
  startRegistration,
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/browser'
import { panel, Problem } from './http.ts'
import type { Session } from './types.ts'

interface Challenge<Options> {
  challenge_id: string
  options: Options
}

/**
 * Converts an error of the person or of their authenticator, which is not a failure of the
 * platform.
 */
function asProblem(error: unknown): never {
  if (error instanceof Problem) throw error
  const name = error instanceof Error ? error.name : ''
  if (name === 'NotAllowedError' || name === 'AbortError')
    throw new Problem(
      0,
      'PASSKEY_NOT_USED',
      'The passkey was not used, and the browser does not say why: the dialog was closed, the time ran out, or this device has no passkey for this page.',
    )
  if (name === 'NotSupportedError')
    throw new Problem(
      0,
      'PASSKEY_ALGORITHM',
      'This authenticator supports none of Ed25519, ES256 and RS256. Use another device, a phone or a security key.',
    )
  if (name === 'InvalidStateError')
    throw new Problem(0, 'PASSKEY_KNOWN', 'This authenticator holds a passkey for you already.')
  throw new Problem(0, 'PASSKEY_FAILED', error instanceof Error ? error.message : String(error))
}

/**
 * Creates a passkey.
 * @param path route below /console/api without `/options`
 */
export async function register<T>(path: string, first: object, then: object = {}): Promise<T> {
  const { challenge_id, options } = await panel<Challenge<PublicKeyCredentialCreationOptionsJSON>>(
    'POST',
    `${path}/options`,
    first,
  )
  const response = await startRegistration({ optionsJSON: options }).catch(asProblem)
  return panel<T>('POST', path, { challenge_id, response, ...then })
}

/** Signs in with a passkey, or confirms the person again. */
export async function authenticate(path = '/sign-in/passkey'): Promise<Session> {
  const { challenge_id, options } = await panel<Challenge<PublicKeyCredentialRequestOptionsJSON>>(
    'POST',
    `${path}/options`,
  )
  const response = await startAuthentication({ optionsJSON: options }).catch(asProblem)
  return panel<Session>('POST', path, { challenge_id, response })
}
