import type { Environment } from '../environment.ts'

const PATIENCE_MS = 2000

/**
 * What a chain answers, or `otherwise` where it is away or takes longer than two seconds: a
 * caller's answer does not wait for it.
 */
export async function withTimeout<T>(
  environment: Environment,
  answer: Promise<T>,
  otherwise: T,
): Promise<T> {
  const done = new AbortController()
  const late = environment.sleep(PATIENCE_MS, done.signal).then(() => otherwise)
  try {
    return await Promise.race([answer.catch(() => otherwise), late])
  } finally {
    // With a reason: without one an error with its stack is made for nobody, at every request.
    done.abort('answered')
  }
}
