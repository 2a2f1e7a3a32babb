import type { HttpAnswer } from '../../http-server.ts'

/** An error in Kraken's words, which is the whole response. */
export class KrakenError extends Error {
  override readonly name = 'KrakenError'
}

export const invalid = (argument: string): KrakenError =>
  new KrakenError(`EGeneral:Invalid arguments:${argument}`)

/** Every response has status 200; an error has no result. */
export const answer = (result: unknown, error: string[] = []): HttpAnswer => ({
  status: 200,
  body: JSON.stringify({ error, ...(error.length > 0 ? {} : { result }) }),
})

export type Arguments = Readonly<Record<string, string>>

/**
 * Reads a required argument.
 * @throws KrakenError, naming the argument
 */
export function needed(args: Arguments, name: string): string {
  const value = args[name]
  if (value === undefined || value === '') throw invalid(name)
  return value
}

export const isTrue = (value: string | undefined): boolean =>
  value === 'true' || value === '1' || value === 'True'

/** Converts milliseconds to Unix seconds with a fraction. */
export const seconds = (ms: number): number => ms / 1000
