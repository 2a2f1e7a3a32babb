/**
 * UTF-8 bytes of the largest body that is signed for a signer node to read: both API and nodes hold
 * to it.
 */
export const SIGNED_BODY_BYTES_MAX = 65_536

/** Signed requests that are shown to a signer node by one call: both API and nodes hold to it. */
export const RECEIPTS_MAX = 64

/** `exp − iat` must be strictly below this. */
export const WINDOW_S = 30
/** Tolerated difference between the caller's clock and ours. */
export const CLOCK_SKEW_S = 5
/** Characters of a token. */
export const TOKEN_BYTES_MAX = 8192
/** Characters of a nonce that is a text. */
export const NONCE_LENGTH_MAX = 128

/**
 * The caller's request as it is stored with a transfer and shown to the signer nodes: raw token and
 * raw body.
 */
export interface SignedRequest {
  /** The JWT, exactly as received, without the `Bearer` or `Token` prefix. */
  token: string
  /** HTTP method, upper case. The JWT does not cover it; each path has one meaning per method. */
  method: string
  /** Request target as received: path, with its query when there is one. */
  uri: string
  /** Raw body as received, UTF-8 text; empty string when there is none. */
  body: string
}

/** Claims of a verified request. */
export interface Claims {
  uri: string
  /** As text; a number nonce is kept as its decimal spelling. */
  nonce: string
  iat: number
  exp: number
  /**
   * Unix seconds before which the token is not valid (RFC 7519, section 4.1.5), where it has this
   * optional claim.
   */
  nbf?: number
  sub: string
  bodyHash: string
}

/** Why a request is not authentic. `claim` names the part that failed. */
export class AuthError extends Error {
  readonly claim: string
  constructor(claim: string, message: string) {
    super(message)
    this.name = 'AuthError'
    this.claim = claim
  }
}
