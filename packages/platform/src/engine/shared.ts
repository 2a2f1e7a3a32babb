/**
 * Puts a question once for all callers that ask at the same time or within `keptMs` of its answer.
 * An error goes to all that waited for it, and is not kept. An answer of a time that has not come,
 * as the clock was set back, is an old one.
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
    const asked = ask()
    answer = asked
    asked.then(
      () => {
        answeredAt = clock()
      },
      () => {
        if (answer === asked) answer = null
      },
    )
    return asked
  }
}
