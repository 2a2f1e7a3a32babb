import type { Act } from '../act.ts'
import type { PolicyDocument } from '../document/shape.ts'
import type { PolicyRegistry } from '../registry.ts'

/** One finding about a document. */
export interface Finding {
  /** A document with an error is refused. */
  readonly severity: 'error' | 'warning'
  /** Path of the field, for example `rules[2].approvals`. */
  readonly path: string
  /** Stable code. */
  readonly code: string
  /** A complete sentence. */
  readonly message: string
}

/**
 * What is known around a document. A caller states null for what it cannot know, and the finding
 * `NOT_CHECKED` then names the check that is left out.
 */
export interface LintContext {
  readonly registry: PolicyRegistry
  /** The document in force, which this one is to replace. */
  readonly previous?: PolicyDocument
  /** API keys of the full role that are enrolled at the nodes and not revoked. */
  readonly enrolled: readonly string[] | null
  /** Persons of the enrolments of API keys, as the nodes state them, by API key; absent: none is known. */
  readonly persons?: ReadonlyMap<string, string>
  /** Standing rules in force, as acts. */
  readonly forwards?: readonly Act[]
  /** Origins of the control panel, for example `https://custody.example`. */
  readonly panelOrigins: readonly string[] | null
}

export const error = (path: string, code: string, message: string): Finding => ({
  severity: 'error',
  path,
  code,
  message,
})
export const warning = (path: string, code: string, message: string): Finding => ({
  severity: 'warning',
  path,
  code,
  message,
})
