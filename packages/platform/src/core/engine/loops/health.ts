/**
 * Milliseconds for which a loop must fail before it is reported. Short interruptions of an endpoint
 * are not reported.
 */
const REPORTED_MS = 120_000
const REASON_MAX = 300

/**
 * A loop that fails. `since`: Unix time in milliseconds of the first consecutive failure. `reason`:
 * reason of the latest failure.
 */
export interface FailingLoop {
  loop: string
  since: number
  reason: string
}

/** Tracks which loops of this process fail, since when and why. */
export class LoopHealth {
  readonly #failing = new Map<string, FailingLoop>()

  succeeded(loop: string): void {
    this.#failing.delete(loop)
  }

  failed(loop: string, reason: string, now: number): void {
    // Reasons include text from endpoints and are printed in terminals and pages, so control
    // characters are removed.
    const plain = reason.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').slice(0, REASON_MAX)
    this.#failing.set(loop, { loop, since: this.#failing.get(loop)?.since ?? now, reason: plain })
  }

  /** Returns the loops that have failed for at least `REPORTED_MS`, the longest failure first. */
  failing(now: number): FailingLoop[] {
    return [...this.#failing.values()]
      .filter(({ since }) => now - since >= REPORTED_MS)
      .sort((a, b) => a.since - b.since)
  }
}

/** Describes a failing loop in one sentence. */
export function failingLine({ loop, since, reason }: FailingLoop, now: number): string {
  return `${loop} has failed for ${Math.max(0, Math.round((now - since) / 60_000))} min: ${reason}`
}
