/** Use of a passkey in which the browser reported an error. */
export interface Attempt {
  action: 'create' | 'sign'
  /** Time from the request to the error. */
  elapsedMs: number
  /** Time after which the browser gives up. */
  timeoutMs: number
  /** `navigator.userAgent`. */
  userAgent: string
}

/** Code and sentence of a failure. */
export interface PasskeyProblem {
  code: 'NOT_USED' | 'TIMED_OUT' | 'EXISTS' | 'ALGORITHM' | 'DOMAIN' | 'PASSKEY'
  message: string
}

const OTHERS =
  'Use a phone, a security key, or another computer; or a key file of "custody keygen --type ed25519"'
const NEEDED =
  'An approval needs a passkey with ES256 or Ed25519, because the signer nodes verify no RSA signatures of people'
const ALGORITHM = `This authenticator supports neither ES256 nor Ed25519. Windows Hello on some computers supports RS256 only. ${NEEDED}. ${OTHERS}.`

/**
 * Returns what a person can do about an error of the browser. `NotAllowedError` has several causes,
 * which browsers hide from the page: the person closed the dialog, the time ran out, or no
 * authenticator has the passkey or an allowed algorithm. The message therefore names all that are
 * possible, and no cause as known.
 */
export function passkeyProblem(error: unknown, attempt: Attempt): PasskeyProblem {
  const name = error instanceof Error ? error.name : ''
  if (name === 'InvalidStateError')
    return { code: 'EXISTS', message: 'This authenticator already has this passkey.' }
  if (name === 'NotSupportedError')
    return attempt.action === 'create'
      ? { code: 'ALGORITHM', message: ALGORITHM }
      : { code: 'PASSKEY', message: `The browser cannot use this passkey. ${OTHERS}.` }
  if (name === 'SecurityError')
    return {
      code: 'DOMAIN',
      message:
        'The browser does not allow passkeys on this page. Open the URL that "npx custody approver run" printed, with "localhost" as it is.',
    }
  if (name === 'NotAllowedError' || name === 'AbortError') return notAllowed(attempt)
  return { code: 'PASSKEY', message: error instanceof Error ? error.message : String(error) }
}

function notAllowed({ action, elapsedMs, timeoutMs, userAgent }: Attempt): PasskeyProblem {
  if (elapsedMs >= timeoutMs)
    return {
      code: 'TIMED_OUT',
      message: `No passkey was used within ${timeoutMs / 1000} seconds. Try again, and confirm in the browser's dialog.`,
    }
  if (action === 'sign')
    return {
      code: 'NOT_USED',
      message:
        'The passkey was not used, and the browser does not say why. Either the dialog was closed, or this device does not have the passkey of this page. Try again, and choose the device on which you created it.',
    }
  const windows = /\bWindows\b/.test(userAgent)
    ? 'Windows Hello on this computer may support RS256 only: choose another device in the dialog of Windows.'
    : 'The authenticator may support RS256 only, as Windows Hello on some computers does.'
  return {
    code: 'NOT_USED',
    message: `No passkey was created, and the browser does not say why. If you closed the dialog, try again. If you did not: ${windows} ${NEEDED}. ${OTHERS}.`,
  }
}
