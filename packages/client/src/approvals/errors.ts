/** Stable reasons why an approval is refused. */
export type ApprovalErrorCode =
  /** The response is not an approval of a transfer, or has a version that is not known here. */
  | 'SHAPE'
  /** The platform returned another transfer than the requested one. */
  | 'ID'
  /** It is for another mode, workspace or installation than the trust file. */
  | 'OTHER_PLACE'
  /** The facts have unknown fields, or are of another sub-account. */
  | 'FACTS'
  /** The facts differ from the registry of this package. */
  | 'REGISTRY'
  /** The policy document is missing, or does not have the stated hash and number. */
  | 'DOCUMENT'
  /** Fewer than two signer nodes state that the document is in force. */
  | 'NOT_STATED'
  /** The transfer is open under an earlier document than the newest one that is known. */
  | 'OLDER_DOCUMENT'
  /** The facts do not follow from the signed request of the caller. */
  | 'REQUEST'
  /** The request is not signed by a caller whose key was passed. */
  | 'CALLER'
  /** A decision that the platform returned has an unknown form. */
  | 'DECISION'
  /** The platform states quorums of groups that the document does not have. */
  | 'NEEDS'
  /** The transfer does not wait for approvals. */
  | 'CLOSED'
  /** The private key cannot sign, or is not a key of the person in the document. */
  | 'SIGNER'

const MESSAGE_LENGTH_MAX = 600
const TEXT_LENGTH_MAX = 100

/** Returns a text without control and format characters, so that it cannot forge lines of a log. */
const cleaned = (text: string, length: number): string => {
  const clean = text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD')
  return clean.length > length ? `${clean.slice(0, length - 1)}…` : clean
}

/** Returns a value of the platform as a short text for a message. */
export const cut = (value: unknown): string =>
  ['string', 'number', 'boolean'].includes(typeof value) || value === null
    ? cleaned(String(value), TEXT_LENGTH_MAX)
    : `of the type ${typeof value}`

/** An approval must not be signed, or proves nothing. The message states the reason. */
export class ApprovalError extends Error {
  readonly code: ApprovalErrorCode

  constructor(code: ApprovalErrorCode, message: string) {
    super(cleaned(message, MESSAGE_LENGTH_MAX))
    this.name = 'ApprovalError'
    this.code = code
  }
}

/** @throws ApprovalError */
export const refuse = (code: ApprovalErrorCode, message: string): never => {
  throw new ApprovalError(code, message)
}
