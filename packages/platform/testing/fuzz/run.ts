import { inspect } from 'node:util'
import { SeededRandom } from './seeded-random.ts'

/** Thrown if a case violates a property. */
export class Found extends Error {
  readonly input: unknown
  constructor(what: string, input: unknown, cause?: unknown) {
    super(what, { cause })
    this.name = 'Found'
    this.input = input
  }
}

export interface Order {
  seed: number
  minutes: number
  from: number
  count: number | null
  say(line: string): void
}

/**
 * Maximum number of different findings that are printed. Findings with equal errors are printed
 * once.
 */
const FINDS_MAX = 25

const first = (error: unknown): string => {
  const { name = '', message = String(error), stack = '' } = (error ?? {}) as Error
  const place =
    stack
      .split('\n')
      .find((line) => /packages\/|node_modules\//.test(line) && !/test\/fuzz/.test(line)) ?? ''
  return `${name} ${message.replaceAll(/[0-9a-f]{6,}|\d+|"[^"]*"/gi, '#').slice(0, 120)} ${place.trim()}`
}

/**
 * Runs cases until the time is over. Each case has its own number, so that `--from N --count 1`
 * repeats it.
 * @returns the number of cases, and of printed findings
 */
export async function fuzz(
  order: Order,
  play: (random: SeededRandom, tell: (kind: string) => void) => Promise<void> | void,
): Promise<{ played: number; finds: number; kinds: Map<string, number> }> {
  const seen = new Map<string, number>()
  const kinds = new Map<string, number>()
  const tell = (kind: string): void => void kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  const begun = Date.now()
  let played = 0
  let next = begun + 60_000
  for (
    let at = order.from;
    order.count === null
      ? Date.now() - begun < order.minutes * 60_000
      : at < order.from + order.count;
    at++
  ) {
    const dice = new SeededRandom(order.seed, at)
    try {
      await play(dice, tell)
    } catch (error) {
      const cause = error instanceof Found && error.cause !== undefined ? error.cause : error
      const name = `${error instanceof Found ? error.message.slice(0, 60) : ''} ${first(cause)}`
      seen.set(name, (seen.get(name) ?? 0) + 1)
      if (seen.get(name) === 1 && seen.size <= FINDS_MAX) {
        const input = error instanceof Found ? error.input : null
        order.say(
          `FIND ${seen.size}, case ${at} of seed ${order.seed}: ${(error as Error).message}\n  ${cause instanceof Error ? cause.stack : inspect(cause)}\n  input: ${inspect(input, { depth: 8, maxStringLength: 1500, breakLength: 160 })}`,
        )
      }
    }
    played++
    if (Date.now() > next) {
      order.say(`${Math.round((Date.now() - begun) / 1000)} s: ${played} cases, ${seen.size} finds`)
      next += 60_000
    }
    // Lets timers and sockets run even if no case waits for anything.
    if (played % 500 === 0)
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
  }
  for (const [name, count] of seen) order.say(`${count} × ${name}`)
  return { played, finds: seen.size, kinds }
}
