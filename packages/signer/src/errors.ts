import { parsedBy } from '@custody/request-auth/bodies'
import { ZodError, type ZodType } from 'zod'

/**
 * All errors of a node: the stable code, the number of its rule in the design, and the HTTP status.
 */
const CODES = {
  // Rule 0: the format of the call itself.
  BAD_ORDER: [0, 400],
  NOT_FOUND: [0, 404],
  NOT_ALLOWED: [0, 403],
  TOO_LARGE: [0, 413],
  TOO_BUSY: [0, 429],
  PEER_UNAVAILABLE: [0, 503],
  KEY_NOT_READY: [0, 503],
  SESSION_ABORTED: [0, 503],
  STARTING: [0, 503],
  /** An order without a valid authorisation of the platform. */
  NOT_AUTHORISED: [0, 503],
  /** The authorisation of an order has expired, is from the future, or was used. */
  ORDER_STALE: [0, 503],
  /** The platform has withdrawn the order. */
  ORDER_WITHDRAWN: [0, 503],
  INTERNAL: [0, 500],
  // Rule 1: enrolment and certificates.
  NOT_ENROLLED: [1, 403],
  ENROLMENT_CONFLICT: [1, 409],
  KEY_CONFLICT: [1, 409],
  ENROLMENT_APPROVAL: [1, 409],
  // Rule 2: the caller's request.
  NOT_AUTHENTIC: [2, 403],
  READ_ONLY: [2, 403],
  ACTION_NOT_ALLOWED: [2, 403],
  WORKSPACE_MISMATCH: [2, 403],
  BAD_REQUEST_FIELD: [2, 422],
  // Rule 3: age of a request.
  TOO_OLD: [3, 403],
  /** The host's clock leapt ahead, and no peer's clock confirms it. */
  CLOCK_DOUBTED: [3, 503],
  /** The clocks of the two nodes of a pair differ too much to agree on a day's limits. */
  CLOCK: [3, 503],
  // Rule 4: one meaning for each request and intent.
  INTENT_CONFLICT: [4, 409],
  UNKNOWN_INTENT: [4, 404],
  // Rule 5: assets and networks.
  UNKNOWN_ASSET: [5, 422],
  CHAIN_ID_MISMATCH: [5, 422],
  CONTRACT_MISMATCH: [5, 422],
  // Rule 6: mutually exclusive transactions.
  NOT_EXCLUSIVE: [6, 409],
  // Rule 7: the transaction matches the request.
  NETWORK_MISMATCH: [7, 422],
  ASSET_MISMATCH: [7, 422],
  DESTINATION_MISMATCH: [7, 422],
  AMOUNT_MISMATCH: [7, 422],
  TAG_MISMATCH: [7, 422],
  RESOURCE_MISMATCH: [7, 422],
  SHAPE: [7, 422],
  // Rule 8: derivation paths.
  FOREIGN_PATH: [8, 422],
  CHANGE_MISMATCH: [8, 422],
  PREVIOUS_TRANSACTION: [8, 422],
  // Rule 9: fee limits.
  FEE_CAP: [9, 422],
  FEE_RATE: [9, 422],
  // Rule 10: nonces and expiry.
  NONCE_GAP: [10, 422],
  EXPIRY: [10, 422],
  // Rules 11 and 12: fuel and sweeps.
  FUEL_WITHOUT_INTENT: [11, 422],
  FUEL_TOO_LARGE: [11, 422],
  BUDGET: [11, 429],
  SWEEP_MISMATCH: [12, 422],
  // Rule 13: standing rules.
  RULE_UNKNOWN: [13, 403],
  RULE_EXPIRED: [13, 403],
  FORWARD_CAP: [13, 429],
  FORWARD_TOO_SMALL: [13, 422],
  // Rule 14: voids and cancellations.
  VOIDED: [14, 409],
  ALREADY_SIGNED: [14, 409],
  NOTHING_TO_CANCEL: [14, 409],
  // Rule 15: orders of the operator.
  ORDER_UNKNOWN: [15, 404],
  ORDER_EXPIRED: [15, 403],
  ORDER_APPROVAL: [15, 409],
  // Rule 17: policies.
  POLICY_DENIED: [17, 403],
  POLICY_APPROVAL: [17, 409],
  POLICY_WINDOW: [17, 429],
  POLICY_BEHIND: [17, 503],
  POLICY_STOPPED: [17, 409],
  BAD_POLICY: [17, 422],
  // Rules of the threshold protocol.
  BANNED: [107, 409],
  HEAD_WENT_BACK: [113, 409],
  RECORD_UNREADABLE: [113, 409],
  RESTORING: [113, 409],
} as const satisfies Record<string, readonly [number, number]>

export type Code = keyof typeof CODES

export class Refusal extends Error {
  readonly code: Code
  readonly rule: number
  readonly status: number
  /** Further public fields of the response. */
  readonly detail: Record<string, unknown>
  constructor(code: Code, message: string, detail: Record<string, unknown> = {}) {
    super(message)
    this.name = 'Refusal'
    this.code = code
    this.rule = CODES[code][0]
    this.status = CODES[code][1]
    this.detail = detail
  }
}

export const isCode = (text: unknown): text is Code =>
  typeof text === 'string' && Object.hasOwn(CODES, text)

export function errorAnswer(error: unknown): { status: number; body: Record<string, unknown> } {
  if (error instanceof Refusal) {
    return {
      status: error.status,
      body: { error: error.code, rule: error.rule, message: error.message, ...error.detail },
    }
  }
  if (error instanceof ZodError)
    return {
      status: 400,
      body: { error: 'BAD_ORDER', rule: 0, message: 'The call has an unknown format' },
    }
  return {
    status: 500,
    body: {
      error: 'INTERNAL',
      rule: 0,
      message: 'The node encountered an unexpected error; see its log',
    },
  }
}

/**
 * Parses a partner's response. An invalid response is an error of the partner, not of the caller.
 */
export function shapeOfAnswer<T>(schema: ZodType<T>, value: unknown, node: number): T {
  const parsed = parsedBy(schema, value)
  if (!parsed?.success)
    throw new Refusal(
      'PEER_UNAVAILABLE',
      `The response of peer node ${node} has an unknown format`,
      {
        node,
      },
    )
  return parsed.data
}
