import { reasonOf } from '../reason.ts'
import { RpcRefused, type RpcEndpoint } from '../rpc.ts'
import type { RequestOutcome, MeteredFetch } from './metered-fetch.ts'

/**
 * `ok`: works. `limited`: works with a limitation. `missing`: absent, although the platform needs
 * it.
 */
type CheckState = 'ok' | 'limited' | 'missing'

/** One line of the report. `code` is stable; `advice` is null if there is nothing to do. */
export interface CheckLine {
  code: string
  state: CheckState
  reason: string
  advice: string | null
}

/** Adds details to the result of a check. */
export interface Say {
  /** Adds what was found to a successful result. */
  note(text: string): void
  /** Marks the result as limited, with the reason. */
  limited(reason: string, advice?: string): void
}

/** Description of a check, and the meaning of its failure. */
export interface Check {
  code: string
  /** The method or field, written as the beginning of the reason. */
  what: string
  /** What to do if it is missing. */
  advice: string
  /** The consequence of its absence; undefined if the platform cannot work without it. */
  without?: string
  /**
   * Returns whether the platform's client tolerates a failure; by default it tolerates all. Any
   * other failure makes the result `missing`.
   */
  when?: (error: unknown) => boolean
}

/** JSON-RPC's code for an unknown method, and EIP-1474's code for an unsupported one. */
const NOT_SERVED_CODES: readonly number[] = [-32601, -32004]
/**
 * Texts by which endpoints and proxies report that they do not serve a method, whatever the code.
 */
const NOT_SERVED = new RegExp(
  '\\b(?:method|rpc|command|path|endpoint)\\b.{0,80}(?:not found|not supported|unsupported|does not exist|not available|not allowed' +
    '|disabled|not whitelisted|is invalid)|\\b(?:unknown|invalid|unsupported|disallowed) (?:method|command|path)\\b' +
    '|^(?:unknowncmd|nopermission|notsupported|forbidden):',
  'is',
)

/** Returns whether an error means that the endpoint does not serve the request. */
export function isNotServed(error: unknown, { status }: RequestOutcome): boolean {
  if (status === 405 || status === 501) return true
  if (!(error instanceof RpcRefused)) return status === 404
  return NOT_SERVED_CODES.includes(error.rpcCode) || NOT_SERVED.test(error.message)
}

/**
 * Describes what an HTTP status means for the account at the provider; null if it means nothing for
 * it.
 */
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

/** Collects the lines of a report. */
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

  /** Removes parts of the URL and of credentials from the text of a response or an error. */
  redact(text: string): string {
    return this.#secrets.reduce((left, secret) => left.replaceAll(secret, '…'), text)
  }

  /**
   * Runs one check and adds its line.
   * @returns the result of `work`; undefined if it failed, in which case the line contains the
   *   reason
   */
  async check<T>(check: Check, work: (say: Say) => Promise<T>): Promise<T | undefined> {
    const { code, what, advice, without, when = () => true } = check
    let note: string | null = null
    let limit: { reason: string; advice: string } | null = null
    try {
      const result = await work({
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
      return result
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

/** Returns the texts to redact: parts of the URL and of headers that are long enough to be keys. */
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
