import { reasonOf } from '../reason.ts'
import { RpcRefused, type RpcEndpoint } from '../rpc.ts'
import type { RequestOutcome, MeteredFetch } from './metered-fetch.ts'

/** `ok`; `limited`: works with a consequence; `missing`: the platform needs it. */
type CheckState = 'ok' | 'limited' | 'missing'

/** One line of the table. `code` is stable; `advice` is null where there is nothing to do. */
export interface CheckLine {
  code: string
  state: CheckState
  reason: string
  advice: string | null
}

/** What a check says besides its result. */
export interface Say {
  /** What was found, where all is well. */
  note(text: string): void
  /** It works with a consequence. */
  limited(reason: string, advice?: string): void
}

/** What is checked, and what it means where it fails. */
export interface Check {
  code: string
  /** The method or field, as the reason begins. */
  what: string
  /** What to do where it is missing. */
  advice: string
  /** The consequence of doing without it; undefined: it cannot be done without. */
  without?: string
  /**
   * The failures that the platform's client does without; all of them by default. Any other makes
   * it missing.
   */
  when?: (error: unknown) => boolean
}

/** JSON-RPC's code for a method that is not there, and EIP-1474's for one that is not supported. */
const NOT_SERVED_CODES: readonly number[] = [-32601, -32004]
/** How endpoints and proxies say that they do not serve a method, whatever the code. */
const NOT_SERVED = new RegExp(
  '\\b(?:method|rpc|command|path|endpoint)\\b.{0,80}(?:not found|not supported|unsupported|does not exist|not available|not allowed' +
    '|disabled|not whitelisted|is invalid)|\\b(?:unknown|invalid|unsupported|disallowed) (?:method|command|path)\\b' +
    '|^(?:unknowncmd|nopermission|notsupported|forbidden):',
  'is',
)

/** Whether an error says that the endpoint does not serve what was asked. */
export function isNotServed(error: unknown, { status }: RequestOutcome): boolean {
  if (status === 405 || status === 501) return true
  if (!(error instanceof RpcRefused)) return status === 404
  return NOT_SERVED_CODES.includes(error.rpcCode) || NOT_SERVED.test(error.message)
}

/** What an HTTP status says about the account at the provider; null where it says nothing. */
export function statusText(status: number | null): string | null {
  switch (status) {
    case 401:
    case 407:
      return `the endpoint rejects the credentials (HTTP ${status})`
    case 403:
      return 'the endpoint forbids it (HTTP 403): the key or the plan does not include it, or this address is blocked'
    case 402:
      return 'the endpoint requires payment (HTTP 402): the plan does not include it, or its allowance is used up'
    case 429:
      return 'the endpoint limits requests (HTTP 429), so this could not be checked'
    default:
      return null
  }
}

/** The lines of a report, and how they come about. */
export class Report {
  readonly lines: CheckLine[] = []
  readonly questions: MeteredFetch
  readonly #secrets: readonly string[]

  constructor(endpoint: RpcEndpoint, questions: MeteredFetch) {
    this.questions = questions
    this.#secrets = secretsOf(endpoint)
  }

  add(line: CheckLine): void {
    this.lines.push({ ...line, reason: this.redact(line.reason) })
  }

  /** Without the parts of the URL and the credentials that an answer or an error repeats. */
  redact(text: string): string {
    return this.#secrets.reduce((left, secret) => left.replaceAll(secret, '…'), text)
  }

  /**
   * Runs one check and adds its line. @returns what it found; undefined: it failed, and the line
   * says why
   */
  async check<T>(check: Check, work: (say: Say) => Promise<T>): Promise<T | undefined> {
    const { code, what, advice, without, when = () => true } = check
    let note: string | null = null
    let limit: { reason: string; advice: string } | null = null
    try {
      const found = await work({
        note: (text) => {
          note = text
        },
        limited: (reason, other = advice) => {
          limit = { reason, advice: other }
        },
      })
      const fault = limit as { reason: string; advice: string } | null
      const reason = fault?.reason ?? note ?? `${what} is served`
      this.add({ code, state: fault ? 'limited' : 'ok', reason, advice: fault?.advice ?? null })
      return found
    } catch (error) {
      const reason = this.#failure(what, error)
      const isLimited = without !== undefined && when(error)
      this.add({
        code,
        state: isLimited ? 'limited' : 'missing',
        advice,
        reason: isLimited ? `${reason}: ${without}` : reason,
      })
      return undefined
    }
  }

  #failure(what: string, error: unknown): string {
    const { last } = this.questions
    const status = statusText(last.status)
    if (status !== null) return `${what}: ${status}`
    if (isNotServed(error, last)) return `${what} is not served`
    const reason = reasonOf(error)
    return reason.includes(what) ? reason : `${what}: ${reason}`
  }
}

/**
 * What an answer must not repeat: parts of the URL and of headers that are long enough to be keys.
 */
function secretsOf({ url, password, headers = {} }: RpcEndpoint): string[] {
  const { pathname, search } = new URL(url)
  const parts = [...pathname.split('/'), ...search.slice(1).split(/[&=]/)].filter(
    (part) => part.length >= 8,
  )
  const values = [password ?? '', ...Object.values(headers)].filter((part) => part.length >= 4)
  return [...new Set([...parts, ...values, ...parts.map(decoded)])].sort(
    (a, b) => b.length - a.length,
  )
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
