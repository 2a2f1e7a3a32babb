/**
 * Maximum size, in UTF-8 bytes, of a signed body that signer nodes read. The API and the nodes both
 * enforce it.
 */
export const SIGNED_BODY_BYTES_MAX = 65_536

/**
 * Maximum number of signed requests in one call to a signer node. The API and the nodes both
 * enforce it.
 */
export const RECEIPTS_MAX = 64

/** `exp − iat` must be strictly below this number of seconds. */
export const WINDOW_S = 30
/** Tolerated difference between the caller's clock and the server's clock, in seconds. */
export const CLOCK_SKEW_S = 5
/** Maximum length of a token, in characters. */
export const TOKEN_BYTES_MAX = 8192
/** Maximum length of a nonce that is a string, in characters. */
export const NONCE_LENGTH_MAX = 128

/**
 * The caller's request as it is stored with a transfer and sent to the signer nodes: raw token and
 * raw body.
 */
export interface SignedRequest {
  /** The JWT, exactly as received, without the `Bearer` or `Token` prefix. */
  token: string
  /**
   * HTTP method, upper case. The JWT covers it only if it has the optional claim `method`. Without
   * the claim, methods of one path differ by their bodies: a body that one of them accepts is
   * refused by the others.
   */
  method: string
  /** Request target as received: path, with its query if there is one. */
  uri: string
  /** Raw body as received, UTF-8 text; empty string if there is none. */
  body: string
}

/** Claims of a verified request. */
export interface Claims {
  uri: string
  /** As text; a nonce that is a number is stored as its decimal digits. */
  nonce: string
  iat: number
  exp: number
  /**
   * Unix seconds before which the token is not valid (RFC 7519, section 4.1.5), if it has this
   * optional claim.
   */
  nbf?: number
  sub: string
  bodyHash: string
  /**
   * HTTP method of the request, if the token has this optional claim. Such a token also covers the
   * query.
   */
  method?: string
}

/** Reason why a request is not authentic. `claim` names the part that failed. */
export class AuthError extends Error {
  readonly claim: string
  constructor(claim: string, message: string) {
    super(message)
    this.name = 'AuthError'
    this.claim = claim
  }
}
