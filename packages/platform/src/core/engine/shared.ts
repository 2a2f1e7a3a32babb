/**
 * Returns a function that shares one call of `ask` among all callers that arrive at the same time
 * or within `keptMs` milliseconds of its result. An error is returned to all waiting callers and is
 * not cached. A result from the future, after the clock was set back, counts as expired.
 */
export function shared<T>(
  ask: () => Promise<T>,
  keptMs: number,
  clock: () => number,
): () => Promise<T> {
  let answer: Promise<T> | null = null
  let answeredAt: number | null = null
  return () => {
    if (answer && (answeredAt === null || Math.abs(clock() - answeredAt) < keptMs)) return answer
    answeredAt = null
    const pending = ask()
    answer = pending
    pending.then(
      () => {
        answeredAt = clock()
      },
      () => {
        if (answer === pending) answer = null
      },
    )
    return pending
  }
}
