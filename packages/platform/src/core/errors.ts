/**
 * The registry of all errors: code, HTTP status, title. Codes are stable; never reuse or rename
 * one.
 */
export const ERRORS = {
  INVALID_REQUEST: [400, 'The request does not match the specification'],
  UNKNOWN_FIELD: [400, 'A field or parameter is unknown'],
  INVALID_JSON: [400, 'The body is not strict JSON'],
  UNSUPPORTED_ASSET: [400, 'The asset is not supported'],
  ASSET_CLOSED: [400, 'The asset accepts no new wallets and addresses'],
  INVALID_ADDRESS: [400, 'The address is not valid for the asset'],
  INVALID_AMOUNT: [400, 'The amount is not valid'],
  INSUFFICIENT_BALANCE: [400, 'The wallet’s balance is too low'],
  CONSOLIDATE_FIRST: [400, 'The amount needs too many coins of the wallet'],
  NOTHING_TO_CONSOLIDATE: [400, 'The wallet has too few coins that are worth merging'],
  WALLET_EXISTS: [400, 'A wallet for this asset already exists'],
  WALLET_MISSING: [400, 'There is no wallet for this asset'],
  WALLET_INACTIVE: [400, 'The wallet is inactive'],
  TRANSACTION_FINAL: [400, 'The transaction can no longer be changed'],
  NOT_REPLACEABLE: [400, 'The transaction cannot be replaced'],
  REPLACEMENT_PENDING: [400, 'Another replacement is in progress'],
  RULE_EXISTS: [400, 'A rule for this asset already exists'],
  RULE_FINAL: [400, 'The rule can no longer be changed'],
  INVOICE_FINAL: [400, 'The invoice can no longer be changed'],
  INVOICE_CLOSED: [409, 'The invoice can no longer be paid'],
  RESOURCE_MISMATCH: [400, 'Nothing is staked for this resource'],
  INSUFFICIENT_STAKE: [400, 'The staked amount is smaller'],
  RELEASE_FIRST: [400, 'Unstaked TRX must be released first'],
  UNSTAKE_LIMIT: [400, 'Too many unstakes are in cooldown'],
  NOTHING_TO_RELEASE: [400, 'There is nothing to release'],
  APPROVAL_REFUSED: [400, 'The approval does not count'],
  NOT_FROZEN: [400, 'The address is not frozen'],
  WEBHOOK_LIMIT: [400, 'There are too many webhooks'],
  WEBHOOK_DISABLED: [400, 'The webhook is disabled'],
  EXCHANGE_KEY_REFUSED: [400, 'The exchange rejected the key'],
  EXCHANGE_ACCOUNT_EXISTS: [400, 'The key is already linked'],
  EXCHANGE_UNSUPPORTED: [400, 'The exchange does not support this'],
  ORDER_FINAL: [400, 'The order has ended'],
  UNAUTHORIZED: [401, 'Authentication failed'],
  SIGN_IN_REQUIRED: [401, 'Sign-in is required'],
  SIGN_IN_FAILED: [401, 'The sign-in failed'],
  FORBIDDEN: [403, 'Not permitted'],
  READ_ONLY: [403, 'The role of the API key does not allow this'],
  IP_NOT_ALLOWED: [403, 'The API key is not allowed from this address'],
  ROLE_REQUIRED: [403, 'The role does not allow this'],
  RECENT_SIGN_IN_REQUIRED: [403, 'The last factor was confirmed too long ago'],
  FOREIGN_ORIGIN: [403, 'The request comes from another page'],
  HTTPS_REQUIRED: [403, 'The control panel requires https'],
  PREPAID_FEE_EXHAUSTED: [403, 'The prepaid fee account does not cover the platform fee'],
  ADDRESS_FROZEN: [403, 'The address is frozen'],
  POLICY_DENIED: [403, 'The policy of the workspace does not allow it'],
  SANCTIONED: [403, 'The address is sanctioned'],
  NOT_FOUND: [404, 'Not found'],
  METHOD_NOT_ALLOWED: [405, 'The path does not support this method'],
  REQUEST_TIMEOUT: [408, 'The request took too long to arrive'],
  PASSKEY_UNAVAILABLE: [409, 'Passkeys are not available at this address'],
  LAST_OWNER: [409, 'A workspace must have an owner'],
  LAST_FACTOR: [409, 'A person must have a way to sign in'],
  COIN_RESERVED: [409, 'A pending transfer has reserved the coin'],
  CONSOLIDATION_PENDING: [409, 'Unconfirmed consolidations contain half of the wallet’s balance'],
  FEE_RATE_ABOVE_MAXIMUM: [409, 'The fee rate of the network is above the maximum'],
  APPROVAL_CLOSED: [409, 'It does not wait for approvals'],
  POLICY_CHANGE_LIMIT: [409, 'Too many policy changes are not decided'],
  QUOTE_EXPIRED: [409, 'The quote has expired'],
  CONVERSION_UNAVAILABLE: [409, 'No exchange account can convert this now'],
  EXCHANGE_ADDRESS_CHANGED: [409, 'The exchange’s deposit address has changed'],
  EXCHANGE_ACCOUNT_LINKED: [409, 'The account at the exchange is already linked'],
  EXCHANGE_ACCOUNT_BUSY: [409, 'Operations of the exchange account are in progress'],
  INVITATION_CLOSED: [410, 'The invitation was used, withdrawn or has expired'],
  CURSOR_EXPIRED: [410, 'The event log does not reach back that far'],
  PAYLOAD_TOO_LARGE: [
    413,
    'The body exceeds 64 KiB, 4 KiB without authentication, or 1 MiB with a document',
  ],
  URI_TOO_LONG: [414, 'The path is too long'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'The body must be application/json without Content-Encoding'],
  HEADERS_TOO_LARGE: [431, 'The path and headers are too large'],
  RATE_LIMITED: [429, 'Rate limit exceeded'],
  CONCURRENT_REQUEST: [429, 'Another such request of the workspace is in progress'],
  INTERNAL: [500, 'Unexpected server error'],
  NETWORK_UNAVAILABLE: [503, 'A blockchain network cannot be reached'],
  PROVIDER_UNAVAILABLE: [503, 'A screening provider cannot be reached'],
  PRICE_UNAVAILABLE: [503, 'There is no current price'],
  EXCHANGE_UNAVAILABLE: [503, 'An exchange cannot be reached'],
  SIGNERS_UNAVAILABLE: [503, 'The signer nodes cannot be reached'],
  KEY_PENDING: [503, 'The key of the workspace is being generated'],
  UNAVAILABLE: [503, 'The service is not ready'],
} as const satisfies Record<string, readonly [number, string]>

export type ErrorCode = keyof typeof ERRORS

/**
 * An error that a caller may see. `message` is a sentence for people; `field` names the invalid
 * field.
 */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly field: string | undefined
  readonly details: Record<string, unknown> | undefined
  /** Seconds after which the caller should retry a request that was answered with 429 or 503. */
  readonly retryAfterS: number | undefined
  constructor(
    code: ErrorCode,
    message: string,
    options: { field?: string; details?: Record<string, unknown>; retryAfterS?: number } = {},
  ) {
    super(message)
    this.name = 'ApiError'
    this.code = code
    this.status = ERRORS[code][0]
    this.field = options.field
    this.details = options.details
    this.retryAfterS = options.retryAfterS
  }
}
