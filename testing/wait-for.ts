import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Time in milliseconds after which a wait has hung. It decides nothing else in a test, because
 * machines and their load differ.
 */
export const HANG_MS = 600_000

/**
 * Repeats a check until it returns a value, at growing intervals, because a signed request costs
 * both sides five milliseconds of processor time.
 * @param what what the check waits for, for the message of the error
 * @param options.pauseMsMax longest interval in milliseconds
 * @param options.details adds to the message of the error
 * @returns the value
 * @throws Error after {@link HANG_MS}
 */
export async function waitFor<T>(
  what: string,
  check: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  { pauseMsMax = 250, details = () => '' }: { pauseMsMax?: number; details?: () => string } = {},
): Promise<T> {
  const end = performance.now() + HANG_MS
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMsMax, pauseMs * 1.4)) {
    const value = await check()
    if (value) return value
    if (performance.now() > end)
      throw new Error(`${what}: not within ${HANG_MS / 1000} s\n${details()}`.trimEnd())
    await sleep(pauseMs)
  }
}
