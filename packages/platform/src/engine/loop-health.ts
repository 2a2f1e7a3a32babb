/**
 * A loop that fails for so long is reported: an endpoint that is away for a moment is not worth a
 * word.
 */
const REPORTED_MS = 120_000
const REASON_MAX = 300

/** `since`: Unix milliseconds of the first failure in a row. `reason`: of the last one. */
export interface FailingLoop {
  loop: string
  since: number
  reason: string
}

/** Which loops of this process fail, since when, and why. */
export class LoopHealth {
  readonly #failing = new Map<string, FailingLoop>()

  succeeded(loop: string): void {
    this.#failing.delete(loop)
  }

  failed(loop: string, reason: string, now: number): void {
    // Endpoints' words are part of a reason, and it is printed in terminals and pages.
    const plain = reason.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').slice(0, REASON_MAX)
    this.#failing.set(loop, { loop, since: this.#failing.get(loop)?.since ?? now, reason: plain })
  }

  /** The loops that have failed for minutes, the longest first. */
  failing(now: number): FailingLoop[] {
    return [...this.#failing.values()]
      .filter(({ since }) => now - since >= REPORTED_MS)
      .sort((a, b) => a.since - b.since)
  }
}

/** One sentence for a loop that fails. */
export function failingLine({ loop, since, reason }: FailingLoop, now: number): string {
  return `${loop} has failed for ${Math.max(0, Math.round((now - since) / 60_000))} min: ${reason}`
}
