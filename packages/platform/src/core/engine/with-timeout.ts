import type { Environment } from '../environment.ts'

const PATIENCE_MS = 2000

/**
 * Returns the chain's response, or `otherwise` if the chain fails or takes longer than two seconds,
 * so that a caller's response is not delayed.
 */
export async function withTimeout<T>(
  environment: Pick<Environment, 'sleep'>,
  answer: Promise<T>,
  fallback: T,
): Promise<T> {
  const done = new AbortController()
  const late = environment.sleep(PATIENCE_MS, done.signal).then(() => fallback)
  try {
    return await Promise.race([answer.catch(() => fallback), late])
  } finally {
    // The abort has a reason, because without one an error with a stack trace is created for every
    // request.
    done.abort('answered')
  }
}
