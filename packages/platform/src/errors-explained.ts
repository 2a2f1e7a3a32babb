import type { ErrorCode } from './errors.ts'

/**
 * Whether a caller may send the same request again: `never` – it fails again until it is changed;
 * `later` – it may succeed once something else has changed; `again` – immediately, with growing
 * pauses and the same `sequence_id`; `reset` – when the window ends.
 */
export type Retry = 'never' | 'later' | 'again' | 'reset'

export interface Explanation {
  why: string
  action: string
  retry: Retry
}

export const RETRIES: Readonly<Record<Retry, string>> = {
  never: 'Do not repeat it as it is: it fails again until the request is changed.',
  later: 'Repeat it once what it names has changed. With a `sequence_id` nothing is done twice.',
  again:
    'Repeat it with growing pauses (1 s, doubled up to 60 s) and the same `sequence_id`: it is done once at most. ' +
    'A write without a `sequence_id` may have been done; look before you repeat it.',
  reset: 'Repeat it after `x-rate-limit-reset` (or `Retry-After` seconds). Nothing was done.',
}

/** Causes and remedies of each error, shown at `/reference/errors`. */
export const EXPLANATIONS: Readonly<Record<ErrorCode, Explanation>> = {
  INVALID_REQUEST: {
    why: 'A field, parameter or header has a value that is not allowed, or is missing.',
    action: 'Change what `field` names, as `message` says.',
    retry: 'never',
  },
  UNKNOWN_FIELD: {
    why: 'The body or the query has a name that the operation does not know; a misspelt one would else be dropped in silence.',
    action: 'Correct or leave out what `field` names.',
    retry: 'never',
  },
  INVALID_JSON: {
    why: 'The body is no JSON object in UTF-8, has a key twice, or is nested too deep.',
    action: 'Send one strict JSON object with Content-Type: application/json.',
    retry: 'never',
  },
  UNSUPPORTED_ASSET: {
    why: 'The name is none of `GET /assets`; names are case-sensitive, and a token carries its network’s suffix.',
    action: 'Take `asset_name` from the list.',
    retry: 'never',
  },
  ASSET_CLOSED: {
    why: 'The asset or its network is retired or deprecated: the message names the reason and the day. What is held can still be sent.',
    action:
      'Use another asset. The operator can allow a deprecated one by `CUSTODY_ALLOW_DEPRECATED`, a retired one never.',
    retry: 'never',
  },
  INVALID_ADDRESS: {
    why: 'Checksum, network or kind of the address do not fit the asset, its tag is missing or wrong, or it is the wallet’s own.',
    action: 'Ask the payee for the address again; `POST /dac/v1/validate-address` tries one.',
    retry: 'never',
  },
  INVALID_AMOUNT: {
    why: 'It is zero, below the asset’s least, has more decimals than the asset, or exceeds what the operation allows.',
    action: 'Send an amount within the bounds that `message` names.',
    retry: 'never',
  },
  INSUFFICIENT_BALANCE: {
    why: 'Amount and network fee are more than the wallet can spend; what is reserved for other transfers is not spendable.',
    action: 'Fund the wallet or send less.',
    retry: 'later',
  },
  WALLET_EXISTS: {
    why: 'A sub-account has one wallet for each asset, and this one is there.',
    action: 'Use the wallet that `wallet_id` names.',
    retry: 'never',
  },
  WALLET_MISSING: {
    why: 'The sub-account has no wallet for the asset.',
    action: 'Create it with `POST /dac/v1/create-wallet`.',
    retry: 'later',
  },
  WALLET_INACTIVE: {
    why: 'The operator has set the wallet at rest. Deposits are credited all the same.',
    action: 'Ask the operator.',
    retry: 'later',
  },
  TRANSACTION_FINAL: {
    why: 'The transaction is confirmed or failed already.',
    action: 'Read it; there is nothing left to change.',
    retry: 'never',
  },
  NOT_REPLACEABLE: {
    why: 'The chain has no way to replace a transaction, or this one waits for no block now.',
    action: 'Wait: it confirms or expires by itself.',
    retry: 'never',
  },
  REPLACEMENT_PENDING: {
    why: 'Another speed-up or cancellation of it is under way.',
    action: 'Read the transaction; ask again when that one has ended.',
    retry: 'later',
  },
  RULE_EXISTS: {
    why: 'The asset has a live forwarding rule, which `id` names.',
    action: 'Delete that one first.',
    retry: 'later',
  },
  RULE_FINAL: {
    why: 'The rule has expired or was deleted.',
    action: 'Create another.',
    retry: 'never',
  },
  INVOICE_FINAL: {
    why: 'The invoice is paid, expired or marked, or a payment of it is on its way.',
    action: 'Read it; mark it or refund it instead.',
    retry: 'never',
  },
  INVOICE_CLOSED: {
    why: 'The invoice’s time is over, or it was cancelled; `inv_status` says which.',
    action: 'Ask the merchant for a new invoice.',
    retry: 'never',
  },
  RESOURCE_MISMATCH: {
    why: 'Nothing is staked for this resource and address.',
    action: 'Read `GET /dav/v1/staking`.',
    retry: 'never',
  },
  INSUFFICIENT_STAKE: {
    why: 'Less is staked than is to be unstaked.',
    action: 'Read `GET /dav/v1/staking`.',
    retry: 'never',
  },
  RELEASE_FIRST: {
    why: 'Unstaked TRX whose cooldown is over waits, and the chain takes no further unstake before it is released.',
    action: 'Call `POST /dav/v1/release-unstaked`, then again.',
    retry: 'later',
  },
  UNSTAKE_LIMIT: {
    why: 'The chain lets a limited number of unstakes cool down at once.',
    action: 'Wait until one can be released.',
    retry: 'later',
  },
  NOTHING_TO_RELEASE: {
    why: 'No unstaked TRX has ended its cooldown.',
    action: 'Wait for the event `staking.releasable`.',
    retry: 'later',
  },
  NOT_FROZEN: {
    why: 'The address is not on the frozen list of the sub-account.',
    action: 'Compare it with `GET /dac/v1/frozen-addresses`.',
    retry: 'never',
  },
  WEBHOOK_LIMIT: {
    why: 'The workspace has as many webhooks as it may have.',
    action: 'Delete one.',
    retry: 'later',
  },
  WEBHOOK_DISABLED: {
    why: 'It was disabled, by you or after too many failed tries in a row.',
    action: 'Enable it with PATCH {"disabled": false}.',
    retry: 'later',
  },
  EXCHANGE_KEY_REFUSED: {
    why: 'The exchange does not know the key, or it lacks a right or an address that the exchange wants.',
    action: 'Make a key with the rights that `message` names, and link it.',
    retry: 'never',
  },
  EXCHANGE_ACCOUNT_EXISTS: {
    why: 'The same key is linked already; `id` names the account where it is yours.',
    action: 'Use that account.',
    retry: 'never',
  },
  EXCHANGE_UNSUPPORTED: {
    why: 'This installation or the exchange does not do that: the exchange, market, network or kind of order.',
    action: 'Read `GET /dac/v1/exchanges` and `GET /dac/v1/markets`.',
    retry: 'never',
  },
  ORDER_FINAL: {
    why: 'The order is filled, cancelled or rejected.',
    action: 'Read it.',
    retry: 'never',
  },
  UNAUTHORIZED: {
    why:
      'A header is missing, or the JWT breaks a rule; `field` names the claim: signature, clock (`iat`, `exp`), `uri`, `bodyHash`, ' +
      '`nonce` used before, or `sub`.',
    action:
      'Sign each attempt anew over the very bytes that are sent, with a clock within 5 s of the `date` header.',
    retry: 'never',
  },
  SIGN_IN_REQUIRED: {
    why: 'The control panel was asked without a session, or its time is over.',
    action: 'Sign in.',
    retry: 'never',
  },
  SIGN_IN_FAILED: {
    why: 'Name, password or factor are wrong, or the sign-in is locked after too many tries; `locked_until` says for how long.',
    action: 'Try again, with a recovery code where the factor is lost; the owner can invite anew.',
    retry: 'never',
  },
  IP_NOT_ALLOWED: {
    why: 'The API key is limited to addresses, and the request came from another one.',
    action: 'Ask from an allowed address, or have the list changed in the control panel.',
    retry: 'never',
  },
  ROLE_REQUIRED: {
    why: 'The person’s role in the workspace does not allow it.',
    action: 'Ask an admin or the owner.',
    retry: 'never',
  },
  RECENT_SIGN_IN_REQUIRED: {
    why: 'It is sensitive, and the last factor was shown more than 15 minutes ago.',
    action: 'Show a factor again.',
    retry: 'later',
  },
  FOREIGN_ORIGIN: {
    why: 'The browser says that another page asks.',
    action: 'Use the control panel itself.',
    retry: 'never',
  },
  HTTPS_REQUIRED: {
    why: 'Sessions are kept in cookies that leave over https alone; localhost counts as such.',
    action: 'Open the panel by https.',
    retry: 'never',
  },
  PASSKEY_UNAVAILABLE: {
    why: 'Passkeys belong to a host name, and the panel was opened by another one or by an IP address.',
    action: 'Open it by the name of CUSTODY_PUBLIC_URL.',
    retry: 'never',
  },
  LAST_OWNER: {
    why: 'It would leave the workspace without an owner.',
    action: 'Make another person the owner first.',
    retry: 'later',
  },
  LAST_FACTOR: {
    why: 'It would leave the person without a way to sign in.',
    action: 'Add another factor first.',
    retry: 'later',
  },
  INVITATION_CLOSED: {
    why: 'The link was used, withdrawn, or is too old.',
    action: 'Have another one made.',
    retry: 'never',
  },
  FORBIDDEN: {
    why: 'The object belongs to another workspace.',
    action: 'Use a key of that workspace.',
    retry: 'never',
  },
  READ_ONLY: {
    why: 'The API key may only read.',
    action: 'Sign with a key of the role full.',
    retry: 'never',
  },
  PREPAID_FEE_EXHAUSTED: {
    why: 'The USD account of platform fees does not cover the fee of this one.',
    action: 'Have the operator top it up.',
    retry: 'later',
  },
  ADDRESS_FROZEN: {
    why: 'Screening has frozen the address for this sub-account.',
    action: 'Clear the case; then unfreeze the address.',
    retry: 'later',
  },
  SANCTIONED: {
    why: 'The address is on a list of sanctions.',
    action: 'Do not pay it. It cannot be unfrozen.',
    retry: 'never',
  },
  NOT_FOUND: {
    why: 'No such path, or no object of this id in the sub-account, or nothing was set up yet.',
    action: 'Check path and id.',
    retry: 'never',
  },
  METHOD_NOT_ALLOWED: {
    why: 'The path is there, with other methods.',
    action: 'Use one that the header `allow` names.',
    retry: 'never',
  },
  REQUEST_TIMEOUT: {
    why: 'The request did not arrive whole within 30 s, which is checked every second.',
    action: 'Send it again over a better connection.',
    retry: 'again',
  },
  QUOTE_EXPIRED: {
    why: 'A quote holds for seconds, and this one’s are over.',
    action: 'Ask for a new quote.',
    retry: 'never',
  },
  CONVERSION_UNAVAILABLE: {
    why: 'No linked account has the market, the balance and the depth now.',
    action: 'Link another account, or try a smaller amount.',
    retry: 'later',
  },
  EXCHANGE_ADDRESS_CHANGED: {
    why: 'The exchange names another deposit address than the last transfer went to.',
    action: 'Look at the exchange’s own page; then sign the new address with `confirm_address`.',
    retry: 'never',
  },
  EXCHANGE_ACCOUNT_BUSY: {
    why: 'Orders or transfers of the account are under way.',
    action: 'Cancel them, or wait for their end.',
    retry: 'later',
  },
  CURSOR_EXPIRED: {
    why: 'The log no longer holds the event that you name: what came after it may be missing.',
    action: 'Read your objects anew, then follow the log from its beginning.',
    retry: 'never',
  },
  PAYLOAD_TOO_LARGE: {
    why: 'The body has more bytes than are read.',
    action: 'Send less.',
    retry: 'never',
  },
  URI_TOO_LONG: {
    why: 'A part of the path is too long.',
    action: 'Check the ids in it.',
    retry: 'never',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    why: 'The body is not application/json in UTF-8, or is compressed: the hash covers the bytes as sent.',
    action: 'Send plain JSON with Content-Type: application/json.',
    retry: 'never',
  },
  HEADERS_TOO_LARGE: {
    why: 'Path and headers together are too large.',
    action: 'Send fewer or shorter headers.',
    retry: 'never',
  },
  RATE_LIMITED: {
    why: 'The key has used its requests of this minute; or the client’s address those that need no valid key.',
    action: 'Wait until the time in `x-rate-limit-reset`.',
    retry: 'reset',
  },
  INTERNAL: {
    why: 'A defect of the service; the operator’s log has it under `request_id`.',
    action: 'Repeat it; if it stays, ask the operator.',
    retry: 'again',
  },
  NETWORK_UNAVAILABLE: {
    why: 'The blockchain’s endpoint does not answer, is too far behind to be believed, or has no estimate of fee rates.',
    action:
      'Repeat it. Where the message says that fee rates are not known, a `fee_rate` of your own is accepted.',
    retry: 'again',
  },
  PROVIDER_UNAVAILABLE: {
    why: 'The screening provider does not answer.',
    action: 'Repeat it.',
    retry: 'again',
  },
  PRICE_UNAVAILABLE: {
    why: 'No source has a price that is young enough to charge or to quote by.',
    action: 'Repeat it.',
    retry: 'again',
  },
  EXCHANGE_UNAVAILABLE: {
    why: 'The exchange does not answer, or limits us.',
    action: 'Repeat it.',
    retry: 'again',
  },
  SIGNERS_UNAVAILABLE: {
    why: 'Fewer signer nodes answer than the operation needs: two for a rule, three for a new key.',
    action: 'Repeat it.',
    retry: 'again',
  },
  UNAVAILABLE: {
    why: 'The service starts or stops, its database is away, its disk is full, or it holds writes until the nodes’ records are adopted.',
    action: 'Repeat it; `GET /readyz` says when it takes transfers.',
    retry: 'again',
  },
}
