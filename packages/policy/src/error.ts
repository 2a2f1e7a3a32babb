/** Stable codes of {@link PolicyError}. */
export type PolicyErrorCode =
  /** A policy file is not valid, apart from its document. */
  | 'FILE'
  /** The text is not JSON, or it is larger than the bound. */
  | 'FORMAT'
  /** A field is missing, unknown, or outside its bounds. */
  | 'SHAPE'
  /** A field or value that this version of the language does not support. */
  | 'UNSUPPORTED'
  /** An amount is not a decimal text, or it has more decimals than its asset. */
  | 'AMOUNT'
  /** The registry does not have the asset or network. */
  | 'UNKNOWN_ASSET'
  /** A rule or a quorum names a group or person that the document does not have. */
  | 'UNKNOWN_GROUP'
  /** The act contradicts itself, or it is for another workspace. */
  | 'ACT'
  /** A public key is not a supported SPKI, or its kind is not the stated one. */
  | 'KEY'
  /** The statement is for another installation, mode or workspace. */
  | 'OTHER_WORKSPACE'
  /** The statement is for another policy document than the one in force. */
  | 'OTHER_POLICY'
  | 'UNKNOWN_PERSON'
  | 'UNKNOWN_KEY'
  | 'KEY_SUSPENDED'
  | 'KEY_REVOKED'
  /** The document does not allow this person to make this statement. */
  | 'NOT_ALLOWED'
  /** `at` is in the future. */
  | 'NOT_YET'
  | 'EXPIRED'
  /** The document has a fault that `lint` reports as an error. */
  | 'LINT'
  /** The approvals of a change or of the end of a stop are not sufficient. */
  | 'QUORUM'
  /** The statement is about another document or stop. */
  | 'OTHER_STATEMENT'
  /** A new key has not agreed to the document. */
  | 'POSSESSION'
  /** Another change is pending. */
  | 'PENDING'
  /** The change was vetoed, and cannot be proposed again. */
  | 'VETOED'
  /** The signature does not verify. */
  | 'SIGNATURE'
  /** The assertion of a passkey does not meet a rule. */
  | 'PASSKEY'

/** The only error that this package throws for bad input. The message is a complete sentence. */
export class PolicyError extends Error {
  readonly code: PolicyErrorCode
  /** Path of the field, for example `rules[2].amount.max.BTC`; empty for the whole input. */
  readonly path: string
  constructor(code: PolicyErrorCode, path: string, message: string) {
    super(path === '' ? message : `${path}: ${message}`)
    this.name = 'PolicyError'
    this.code = code
    this.path = path
  }
}

/**
 * Returns the text of a path of names and indexes, for example `rules[2].amount.max.BTC`.
 * @param parts in the order from the outside to the inside
 */
export function pathOf(parts: readonly PropertyKey[]): string {
  return parts.reduce<string>((path, part) => {
    if (typeof part === 'number') return `${path}[${part}]`
    return path === '' ? String(part) : `${path}.${String(part)}`
  }, '')
}
