/** Time in milliseconds between two messages about the same wait. */
const REPORT_MS = 30_000

interface Tools {
  clock: () => number
  sleep: (ms: number) => Promise<unknown>
  say: (text: string) => void
}

/**
 * Polls until there is a value, and reports every 30 s that it still waits.
 * @param wait.what subject of the messages
 * @param wait.read returns the value; null: not yet. Its errors end the wait.
 * @throws Error if there is no value after `maxMs`
 */
export async function waitUntil<T>(
  { clock, sleep, say }: Tools,
  wait: { what: string; read: () => Promise<T | null>; pollMs: number; maxMs: number },
): Promise<T> {
  const began = clock()
  let reported = began
  for (;;) {
    const value = await wait.read()
    if (value !== null) return value
    const seconds = Math.round((clock() - began) / 1000)
    if (clock() - began > wait.maxMs)
      throw new Error(`${wait.what}: no result after ${seconds} s; it may still be confirmed`)
    if (clock() - reported >= REPORT_MS) {
      reported = clock()
      say(`still waiting for ${wait.what} (${seconds} s)`)
    }
    await sleep(wait.pollMs)
  }
}
