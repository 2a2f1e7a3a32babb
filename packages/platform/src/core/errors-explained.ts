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
  never: 'Change the request before you retry it; the same request would fail again.',
  later:
    'Retry the request after the cause has been resolved. With a `sequence_id`, the request is executed at most once.',
  again:
    'Retry the request with increasing delays (1 s, doubled up to 60 s) and the same `sequence_id`; it is executed at most once. A write without a `sequence_id` may already have been executed: check this before you retry it.',
  reset:
    'Retry the request after `x-rate-limit-reset` (or after `Retry-After` seconds). It was not executed.',
}

/** Causes and remedies of each error, shown at `/reference/errors`. */
export const EXPLANATIONS: Readonly<Record<ErrorCode, Explanation>> = {
  INVALID_REQUEST: {
    why: 'A field, parameter or header is missing or has a value that is not allowed.',
    action: 'Correct the field in `field` as `message` describes.',
    retry: 'never',
  },
  UNKNOWN_FIELD: {
    why: 'The body or the query contains a name that the operation does not define. It is rejected because a misspelt name would otherwise be ignored silently.',
    action: 'Correct or omit the name in `field`.',
    retry: 'never',
  },
  INVALID_JSON: {
    why: 'The body is not a JSON object in UTF-8, contains a key twice, or is nested too deeply.',
    action: 'Send one strict JSON object with Content-Type: application/json.',
    retry: 'never',
  },
  UNSUPPORTED_ASSET: {
    why: 'The name is not in `GET /assets`. Names are case-sensitive, and a token has its network’s suffix.',
    action: 'Use an `asset_name` from the list.',
    retry: 'never',
  },
  ASSET_CLOSED: {
    why: 'The asset or its network is retired or deprecated; the message contains the reason and the date. The balance can still be sent.',
    action:
      'Use another asset. The operator can allow a deprecated asset with `CUSTODY_ALLOW_DEPRECATED`, but not a retired one.',
    retry: 'never',
  },
  INVALID_ADDRESS: {
    why: 'The checksum, network or type of the address does not match the asset, its tag is missing or wrong, or it is the wallet’s own address.',
    action: 'Ask the payee for the address again; `POST /dac/v1/validate-address` validates one.',
    retry: 'never',
  },
  INVALID_AMOUNT: {
    why: 'The amount is zero, below the asset’s minimum, has more decimals than the asset, or exceeds the operation’s maximum.',
    action: 'Send an amount within the limits in `message`.',
    retry: 'never',
  },
  INSUFFICIENT_BALANCE: {
    why: 'The amount plus the network fee exceeds the wallet’s spendable balance. Amounts that are reserved for other transfers, or are in frozen coins, are not spendable.',
    action: 'Fund the wallet, unfreeze coins, or send a smaller amount.',
    retry: 'later',
  },
  CONSOLIDATE_FIRST: {
    why: 'The wallet holds many small coins, and the amount needs more of them than fit into one transaction. `max_spendable` is the largest amount that one transfer can pay now.',
    action:
      'Merge coins with `POST /dac/v1/wallets/{id}/consolidate`, one transaction of up to 200 coins at a time, and send the amount after they are confirmed; or send smaller amounts one after the other. Nothing is stored under the `sequence_id`.',
    retry: 'later',
  },
  NOTHING_TO_CONSOLIDATE: {
    why: 'One consolidation merges at least 10 coins. Fewer are free, confirmed and worth more than the fee of their own input; or `target_coins` leaves fewer; or they are worth more than half of the balance.',
    action:
      'Choose a lower `target_coins` or `min_value`, wait for confirmations or a lower fee rate, or do nothing: transfers of the wallet need few coins. Nothing is stored under the `sequence_id`.',
    retry: 'later',
  },
  WALLET_EXISTS: {
    why: 'A sub-account can have one wallet for each asset, and this wallet exists.',
    action: 'Use the wallet in `wallet_id`.',
    retry: 'never',
  },
  WALLET_MISSING: {
    why: 'The sub-account has no wallet for the asset.',
    action: 'Create it with `POST /dac/v1/create-wallet`.',
    retry: 'later',
  },
  WALLET_INACTIVE: {
    why: 'The operator has deactivated the wallet. Deposits are still credited.',
    action: 'Contact the operator.',
    retry: 'later',
  },
  TRANSACTION_FINAL: {
    why: 'The transaction is already confirmed or failed.',
    action: 'Read the transaction; it can no longer be changed.',
    retry: 'never',
  },
  NOT_REPLACEABLE: {
    why: 'The chain does not support replacement, or this transaction is not waiting for a block now.',
    action: 'Wait until it confirms or expires.',
    retry: 'never',
  },
  REPLACEMENT_PENDING: {
    why: 'Another speed-up or cancellation of the transaction is in progress.',
    action: 'Read the transaction; retry when the other operation has ended.',
    retry: 'later',
  },
  RULE_EXISTS: {
    why: 'The asset already has an active forwarding rule; `id` contains its id.',
    action: 'Delete that rule first.',
    retry: 'later',
  },
  RULE_FINAL: {
    why: 'The rule has expired or was deleted.',
    action: 'Create another rule.',
    retry: 'never',
  },
  INVOICE_FINAL: {
    why: 'The invoice is paid, expired or marked, or a payment for it is in progress.',
    action: 'Read the invoice; mark or refund it instead.',
    retry: 'never',
  },
  INVOICE_CLOSED: {
    why: 'The invoice has expired, or was cancelled; see `inv_status`.',
    action: 'Ask the merchant for a new invoice.',
    retry: 'never',
  },
  RESOURCE_MISMATCH: {
    why: 'Nothing is staked for this resource and address.',
    action: 'Read `GET /dav/v1/staking`.',
    retry: 'never',
  },
  INSUFFICIENT_STAKE: {
    why: 'The staked amount is smaller than the amount to unstake.',
    action: 'Read `GET /dav/v1/staking`.',
    retry: 'never',
  },
  RELEASE_FIRST: {
    why: 'There is unstaked TRX whose cooldown is over. The chain accepts no further unstake before it is released.',
    action: 'Call `POST /dav/v1/release-unstaked`, then retry.',
    retry: 'later',
  },
  UNSTAKE_LIMIT: {
    why: 'The chain limits the number of unstakes that can be in cooldown at the same time.',
    action: 'Wait until an unstake can be released.',
    retry: 'later',
  },
  NOTHING_TO_RELEASE: {
    why: 'No unstaked TRX has completed its cooldown.',
    action: 'Wait for the event `staking.releasable`.',
    retry: 'later',
  },
  APPROVAL_REFUSED: {
    why: 'The signature does not verify, the key is not in the policy document, or the person is not among those whose approvals are missing.',
    action:
      'Read the request again with `GET /dac/v1/approvals/{id}`, and sign its `statement` with a key of the policy document in force.',
    retry: 'never',
  },
  NOT_FROZEN: {
    why: 'The address is not on the frozen list of the sub-account.',
    action: 'Compare the address with `GET /dac/v1/frozen-addresses`.',
    retry: 'never',
  },
  WEBHOOK_LIMIT: {
    why: 'The workspace has reached the maximum number of webhooks.',
    action: 'Delete a webhook.',
    retry: 'later',
  },
  WEBHOOK_DISABLED: {
    why: 'The webhook was disabled by you, or after too many consecutive failed attempts.',
    action: 'Enable the webhook with PATCH {"disabled": false}.',
    retry: 'later',
  },
  EXCHANGE_KEY_REFUSED: {
    why: 'The exchange rejected the key, or the key lacks a permission or an address that the exchange requires.',
    action: 'Create a key with the permissions in `message`, and link it.',
    retry: 'never',
  },
  EXCHANGE_ACCOUNT_EXISTS: {
    why: 'The same key is already linked; if the account is yours, `id` contains its id.',
    action: 'Use that account.',
    retry: 'never',
  },
  EXCHANGE_UNSUPPORTED: {
    why: 'This installation or the exchange does not support the exchange, market, network or order type.',
    action: 'Read `GET /dac/v1/exchanges` and `GET /dac/v1/markets`.',
    retry: 'never',
  },
  ORDER_FINAL: {
    why: 'The order is filled, cancelled or rejected.',
    action: 'Read the order.',
    retry: 'never',
  },
  UNAUTHORIZED: {
    why: 'A header is missing, or the JWT violates a rule; `field` contains the claim: the signature, the clock (`iat`, `exp`), `uri`, `method`, `bodyHash`, a reused `nonce`, or `sub`.',
    action:
      'Sign each attempt with a new token over the exact bytes that are sent, with a clock within 5 s of the `date` header.',
    retry: 'never',
  },
  SIGN_IN_REQUIRED: {
    why: 'The control panel received a request without a session, or with an expired one.',
    action: 'Sign in.',
    retry: 'never',
  },
  SIGN_IN_FAILED: {
    why: 'The name, password or factor is wrong, or the sign-in is locked after too many attempts until `locked_until`.',
    action:
      'Try again. If the factor is lost, use a recovery code, or ask the owner for a new invitation.',
    retry: 'never',
  },
  IP_NOT_ALLOWED: {
    why: 'The API key is restricted to certain addresses, and the request came from another one.',
    action: 'Send the request from an allowed address, or change the list in the control panel.',
    retry: 'never',
  },
  ROLE_REQUIRED: {
    why: 'The person’s role in the workspace does not allow it.',
    action: 'Ask an admin or the owner.',
    retry: 'never',
  },
  RECENT_SIGN_IN_REQUIRED: {
    why: 'The operation is sensitive, and the last factor was confirmed more than 15 minutes ago.',
    action: 'Confirm a factor again.',
    retry: 'later',
  },
  FOREIGN_ORIGIN: {
    why: 'According to the browser, the request comes from another page.',
    action: 'Use the control panel itself.',
    retry: 'never',
  },
  HTTPS_REQUIRED: {
    why: 'Sessions are stored in cookies that the browser sends only over https or to localhost.',
    action: 'Open the panel over https.',
    retry: 'never',
  },
  PASSKEY_UNAVAILABLE: {
    why: 'Passkeys are bound to a host name, and the panel was opened under another name or an IP address.',
    action: 'Open it under the host name in CUSTODY_PUBLIC_URL.',
    retry: 'never',
  },
  LAST_OWNER: {
    why: 'The operation would leave the workspace without an owner.',
    action: 'Make another person the owner first.',
    retry: 'later',
  },
  LAST_FACTOR: {
    why: 'The operation would leave the person without a way to sign in.',
    action: 'Add another factor first.',
    retry: 'later',
  },
  INVITATION_CLOSED: {
    why: 'The link was used, withdrawn, or is too old.',
    action: 'Ask for another invitation.',
    retry: 'never',
  },
  FORBIDDEN: {
    why: 'The object belongs to another workspace.',
    action: 'Use a key of that workspace.',
    retry: 'never',
  },
  READ_ONLY: {
    why: 'The API key has the role read-only or approve, which does not allow the operation.',
    action: 'Sign with an API key that has a role which the message names.',
    retry: 'never',
  },
  PREPAID_FEE_EXHAUSTED: {
    why: 'The balance of the USD account for platform fees is lower than the fee of this operation.',
    action: 'Ask the operator to top it up.',
    retry: 'later',
  },
  ADDRESS_FROZEN: {
    why: 'Screening has frozen the address for this sub-account.',
    action: 'Clear the case, then unfreeze the address.',
    retry: 'later',
  },
  SANCTIONED: {
    why: 'The address is on a sanctions list.',
    action: 'Do not pay this address. It cannot be unfrozen.',
    retry: 'never',
  },
  POLICY_DENIED: {
    why: 'No rule of the workspace’s policy allows the transfer or the forwards of the rule, or a rule denies it. `details.tried` states for each rule why it does not fit.',
    action:
      'Change the transfer so that a rule fits, or let the people named in the policy change it.',
    retry: 'never',
  },
  NOT_FOUND: {
    why: 'The path does not exist, the sub-account has no object with this id, or the object was not set up yet.',
    action: 'Check the path and the id.',
    retry: 'never',
  },
  METHOD_NOT_ALLOWED: {
    why: 'The path exists, but does not support this method.',
    action: 'Use a method from the header `allow`.',
    retry: 'never',
  },
  REQUEST_TIMEOUT: {
    why: 'The request did not arrive completely within 30 s (checked every second).',
    action: 'Send it again over a better connection.',
    retry: 'again',
  },
  COIN_RESERVED: {
    why: 'A transfer that has not ended spends the coin, so that it cannot be frozen. Nothing has changed.',
    action:
      'Cancel the transfer, if it can be cancelled, or wait until it ends; freeze the other coins.',
    retry: 'later',
  },
  CONSOLIDATION_PENDING: {
    why: 'Merged coins cannot be spent before they are confirmed. Therefore unconfirmed consolidations of a wallet contain at most half of its balance, and the next one can be requested when the earlier one has chosen its coins.',
    action: 'Wait for `transaction.confirmed` of the earlier consolidation.',
    retry: 'later',
  },
  FEE_RATE_ABOVE_MAXIMUM: {
    why: 'The current fee rate of the network, at the level `medium`, is above the `max_fee_rate` of the request.',
    action: 'Wait until the rate falls (`POST /dac/v1/estimate-fee`), or send a higher maximum.',
    retry: 'later',
  },
  APPROVAL_CLOSED: {
    why: 'The transfer, the forwarding rule or the policy change is approved, rejected, expired or cancelled.',
    action: 'Read the transfer, the rule or the change; no further approval is required.',
    retry: 'never',
  },
  POLICY_CHANGE_LIMIT: {
    why: 'A workspace has at most 4 policy changes that are not decided.',
    action:
      'Approve or reject one of those that `GET /dac/v1/policy/changes` returns, or wait until it expires.',
    retry: 'later',
  },
  QUOTE_EXPIRED: {
    why: 'A quote is valid for a few seconds, and this one has expired.',
    action: 'Request a new quote.',
    retry: 'never',
  },
  CONVERSION_UNAVAILABLE: {
    why: 'No linked account currently has the market, the balance and the depth for this conversion.',
    action: 'Link another account, or try a smaller amount.',
    retry: 'later',
  },
  EXCHANGE_ADDRESS_CHANGED: {
    why: 'The exchange returns another deposit address than for the last transfer.',
    action:
      'Check the address on the exchange’s website; then sign the new address with `confirm_address`.',
    retry: 'never',
  },
  EXCHANGE_ACCOUNT_LINKED: {
    why: 'The key belongs to an account at the exchange that this installation has linked already, possibly by another key or in another workspace. An account is linked once, so that its balances count once. If the linked account is yours, `id` contains its id.',
    action:
      'Use the linked account. If your account is a duplicate of it, unlink yours. To use another key, change the key of the linked account.',
    retry: 'never',
  },
  EXCHANGE_ACCOUNT_BUSY: {
    why: 'Orders or transfers of the account are in progress.',
    action: 'Cancel them, or wait until they end.',
    retry: 'later',
  },
  CURSOR_EXPIRED: {
    why: 'The log no longer contains the event in the request, so later events may be missing.',
    action: 'Read your objects again, then read the log from its beginning.',
    retry: 'never',
  },
  PAYLOAD_TOO_LARGE: {
    why: 'The body exceeds the maximum size: 64 KiB, 4 KiB for requests without authentication, and 1 MiB for requests with a document.',
    action: 'Send a smaller body.',
    retry: 'never',
  },
  URI_TOO_LONG: {
    why: 'A part of the path is too long.',
    action: 'Check the ids in the path.',
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
    why: 'The key has used its requests for this minute, or the client’s address has used its requests without a valid key. Above that limit, an address is served only with keys that were recently used from it.',
    action: 'Wait until the time in `x-rate-limit-reset`.',
    retry: 'reset',
  },
  CONCURRENT_REQUEST: {
    why: 'Policy simulations, policy evaluations, exports, and quotes and tests of exchange accounts run one at a time for each workspace.',
    action: 'Wait for the end of the other request, or for the seconds in `retry-after`.',
    retry: 'again',
  },
  INTERNAL: {
    why: 'The service has a defect; the operator’s log contains details under `request_id`.',
    action: 'Retry the request; if the error persists, contact the operator.',
    retry: 'again',
  },
  NETWORK_UNAVAILABLE: {
    why: 'The blockchain’s endpoint does not respond, is too far behind the chain, or has no estimate of fee rates.',
    action:
      'Retry the request. If the message says that the fee rates are unknown, a `fee_rate` in the request is accepted.',
    retry: 'again',
  },
  PROVIDER_UNAVAILABLE: {
    why: 'The screening provider does not respond.',
    action: 'Retry the request.',
    retry: 'again',
  },
  PRICE_UNAVAILABLE: {
    why: 'No source has a price that is recent enough for a charge or a quote.',
    action: 'Retry the request.',
    retry: 'again',
  },
  EXCHANGE_UNAVAILABLE: {
    why: 'The exchange does not respond, or limits the request rate.',
    action: 'Retry the request.',
    retry: 'again',
  },
  SIGNERS_UNAVAILABLE: {
    why: 'Fewer signer nodes respond than the operation requires: two for a rule, three for a new key.',
    action: 'Retry the request.',
    retry: 'again',
  },
  KEY_PENDING: {
    why: 'The workspace is new, and the signer nodes have not yet generated its key. They generate keys in the order of the requests. Nothing was created.',
    action:
      'Send the same request again after `Retry-After` seconds, until it succeeds. The workspace keeps its place and gets one key only. The SDK and `custody request` do this by themselves.',
    retry: 'later',
  },
  UNAVAILABLE: {
    why: 'The service is starting or stopping, its database is not available, its disk is full, writes are suspended until the nodes’ records are adopted, or too many request bodies are arriving at the same time.',
    action: 'Retry the request; `GET /readyz` reports when transfers are accepted.',
    retry: 'again',
  },
}
